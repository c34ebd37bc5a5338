"""The service as a process."""

import gc
import ipaddress
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from larl._core.validation import InvalidValue
from larl.service.access import Access
from larl.service.app import make_app
from larl.service.database import Database, checked_url, journal
from larl.service.door import Settings
from larl.service.gate import REQUESTS
from larl.service.journal import TERMS, Journal
from larl.service.minds import warm
from larl.service.seats import Study

BACKLOG = 2048  # connections that may wait
GRACE = 10  # seconds that open requests have when the service is asked to stop
TOKEN_FIRST = "a loopback address until there is a token: `larl token create` creates one"
STOPPING = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """The process was asked to stop, by SIGTERM or Ctrl-C."""


def serve(storage: str, host: str, port: int, settings: Settings) -> None:
    """Serve a storage until asked to stop; then finish open requests, close the storage and return."""
    local = _loopback(host)
    if not settings.auth and not local:
        raise InvalidValue("serve", "host", host, "127.0.0.1, ::1 or localhost where no tokens are asked for")
    url = checked_url(storage)
    if not local and url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise InvalidValue("serve", "host", host, TOKEN_FIRST)
    if settings.alert_url is not None and urlsplit(settings.alert_url).scheme not in ("http", "https"):
        raise InvalidValue("serve", "alert-url", settings.alert_url, "an address that begins with http:// or https://")
    with _until_stopped():
        _serve(storage, host, port, settings, local)
    with suppress(OSError):  # nobody reads it
        shown = url.render_as_string()
        print(f"stopped; all acknowledged requests are stored in {shown}", file=sys.stderr, flush=True)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the block by raising Stopped once, which goes no further; later ones are ignored.

    Uvicorn handles both signals while it runs, and raises them again when it is done: then they arrive here.
    """
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be handled
        yield
        return

    def stop(*_: Any) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    before = {each: signal.signal(each, stop) for each in STOPPING}
    try:
        yield
    except Stopped:  # both signals stay ignored: the process is about to end
        return
    except BaseException:
        for each, handler in before.items():
            signal.signal(each, handler)
        raise


def _serve(storage: str, host: str, port: int, settings: Settings, local: bool) -> None:
    database = Database(storage, write=True, create=True)
    try:
        if not local and not Access(database).any():
            raise InvalidValue("serve", "host", host, TOKEN_FIRST)
        _warn_if_public(database.path)
        with _bound(host, port) as listening:
            prepare(Journal(database))
            _keep_what_there_is()
            listening.listen(BACKLOG)  # whoever reads the address may connect at once
            address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
            print(f"serving {database.shown} at {address} (page and /v1; Ctrl-C stops)", flush=True)
            _log_to_stderr()
            app = make_app(database, settings)
            config = uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=GRACE,
                backlog=BACKLOG,
            )
            try:
                uvicorn.Server(config).run(sockets=[listening])
            finally:
                app.state.service.resources.close()  # after a second Ctrl-C, uvicorn has not closed them
    finally:
        database.close()


def _warn_if_public(path: Path | None) -> None:
    """Say that other users of the machine can read an SQLite storage; larl creates one that they cannot."""
    if path is not None and path.stat().st_mode & 0o007:
        print(f"warning: all users of this machine can read {path}: chmod 600 {path}", file=sys.stderr, flush=True)


def _log_to_stderr() -> None:
    """Times are UTC. Lines about requests come with theirs, and some at once."""
    logging.Formatter.converter = time.gmtime
    said = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, format=said, datefmt="%Y-%m-%dT%H:%M:%S", level=logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    REQUESTS.handlers = [handler]
    REQUESTS.propagate = False


def _keep_what_there_is() -> None:
    """What is in memory now stays: nobody need look through it for garbage, nor often at what comes later.

    Little of that is in cycles, and while it is looked for all requests wait: for a tenth of a second if need be.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


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
