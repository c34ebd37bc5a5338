"""Proxies that lose responses, or fall silent."""

import socket
import threading
from collections.abc import Collection
from contextlib import suppress


class LossyProxy:
    """Forwards connections to a service. Connections whose number, from 0, is in `lose` end without a response.

    It can be silent for a while. `accepted` is the number of connections so far.
    """

    def __init__(self, address: str, lose: Collection[int] = ()) -> None:
        self._target, self._lose, self._connections = _parse(address), lose, []
        self._flows = threading.Event()
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                number, self.accepted = self.accepted, self.accepted + 1
                threading.Thread(target=self._forward, args=(client, number in self._lose), daemon=True).start()

    def _forward(self, client: socket.socket, lose: bool) -> None:
        with suppress(OSError), client, socket.create_connection(self._target) as service:
            self._connections.append(client)
            threading.Thread(target=self._copy, args=(client, service), daemon=True).start()
            if lose:
                service.recv(1)  # wait for the response
                client.shutdown(socket.SHUT_RDWR)
            else:
                self._copy(service, client)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                target.sendall(data)

    def fall_silent(self) -> None:
        """Accept connections and data, but forward nothing until `resume`."""
        self._flows.clear()

    def resume(self) -> None:
        """Forward what came meanwhile, and everything else."""
        self._flows.set()

    def disconnect(self) -> None:
        """End all connections."""
        for client in self._connections:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def redirect(self, address: str) -> None:
        """Forward new connections to another address, and end all others."""
        self._target = _parse(address)
        self.disconnect()

    def close(self) -> None:
        """Stop listening and end all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.disconnect()


def _parse(address: str) -> tuple[str, int]:
    host, port = address.removeprefix("http://").split(":")
    return host, int(port)
