"""A service in a process of its own, and a way to it on which answers get lost."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LARL = [sys.executable, "-c", "from larl.cli import main; main()"]


STOPPING = 300.0  # seconds that a service has to end


@contextmanager
def serving(storage: str, *options: str, port: int = 0) -> Iterator[str]:
    """Serve a storage in a process of its own; the address. A policy may take as long as a busy machine needs."""
    words = ["serve", "--storage", storage, "--port", str(port), "--timeout", "60", *options]
    process = subprocess.Popen(
        [*LARL, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", line := process.stdout.readline())
        assert found, f"the service did not start: it printed {line!r}"
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=STOPPING)


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """The address of a service whose storage is in `folder`."""
    with serving(f"sqlite:///{folder / 'study.db'}", *options) as address:
        yield address


class Leaky:
    """A proxy: of the connections that it takes, those numbered in `lose` (from 0) never see their answer."""

    def __init__(self, address: str, lose: set[int]) -> None:
        host, port = address.removeprefix("http://").split(":")
        self._target, self._lose, self._open = (host, int(port)), lose, []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.accepted = 0
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listening.accept()
                number, self.accepted = self.accepted, self.accepted + 1
                threading.Thread(target=self._pass, args=(near, number in self._lose), daemon=True).start()

    def _pass(self, near: socket.socket, lose: bool) -> None:
        with suppress(OSError), near, socket.create_connection(self._target) as far:
            self._open.append(near)
            threading.Thread(target=_copy, args=(near, far), daemon=True).start()
            if lose:
                far.recv(1)  # the service has answered
                near.shutdown(socket.SHUT_RDWR)
            else:
                _copy(far, near)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for near in self._open:
            with suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
