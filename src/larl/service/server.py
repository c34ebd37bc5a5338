"""The service as a process."""

import ipaddress
import logging
import socket
import sys

import uvicorn

from larl._check import InvalidValue
from larl.service.access import Access
from larl.service.app import make_app
from larl.service.database import Database, journal
from larl.service.door import Settings
from larl.service.journal import TERMS, Journal
from larl.service.minds import warm
from larl.service.seats import Study

BACKLOG = 2048  # connections that may wait
GRACE = 10  # seconds that open requests have when the service is asked to stop


def serve(storage: str, host: str, port: int, settings: Settings) -> None:
    """Serve a storage until asked to stop."""
    local = _loopback(host)
    if not settings.auth and not local:
        raise InvalidValue("serve", "host", host, "127.0.0.1, ::1 or localhost where no tokens are asked for")
    database = Database(storage, write=True, create=True)
    try:
        if not local and not Access(database).any():
            raise InvalidValue("serve", "host", host, "a loopback address until there is a token: larl token create")
        with _bound(host, port) as listening:
            prepare(Journal(database))
            listening.listen(BACKLOG)  # whoever reads the address may connect at once
            address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
            print(f"serving {database.url.render_as_string()} at {address} (page and /v1; Ctrl-C stops)", flush=True)
            logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
            config = uvicorn.Config(
                make_app(database, settings), access_log=False, log_level="warning", server_header=False,
                timeout_graceful_shutdown=GRACE, backlog=BACKLOG,
            )  # fmt: skip
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        database.close()


def prepare(book: Journal) -> None:
    """Compile what the open studies need before the first request."""
    studies: dict[str, Study] = {}
    for row in book.select(journal.c.kind.in_(TERMS)):
        studies.setdefault(row.study, Study()).read(row)
    for name, study in studies.items():
        if study.closed is None:
            print(f"preparing {name}", file=sys.stderr, flush=True)
            error = warm(study.terms)
            if error is not None:  # its decisions will fall back; other studies are served as ever
                print(f"{name} cannot be prepared: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    """A socket; an address that is taken is refused before anything begins."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OSError(f"{host}:{port} cannot be served: {error.strerror}") from error
    return listening
