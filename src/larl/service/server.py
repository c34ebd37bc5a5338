"""The service as a process: addresses, signals, logs."""

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
from larl.service.app import make_app
from larl.service.core.agents import compile_policy
from larl.service.http.auth import Auth
from larl.service.http.hosts import is_loopback
from larl.service.http.middleware import ACCESS_LOG
from larl.service.http.protocol import limited_protocol
from larl.service.queries.journal_queries import JournalQueries
from larl.service.settings import Settings
from larl.service.storage.database import Database, parse_url
from larl.service.storage.events import DamagedRow
from larl.service.storage.journal import Journal

BACKLOG = 2048  # connections that may wait
IDLE = 1.5  # times the time limit of policies: a transaction that is idle for longer is ended by PostgreSQL
MAX_CONNECTIONS = 10_000
KEEP_ALIVE = 5  # seconds for which a connection stays open after a response
GRACE = 10  # seconds to finish open requests before the service stops
TOKEN_FIRST = "a loopback address until there is a token: `larl token create` creates one"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """Raised by SIGTERM or Ctrl-C."""


def serve(storage: str, host: str, port: int, settings: Settings) -> None:
    """Serve a storage until asked to stop; then finish open requests, close the storage and return."""
    local = is_loopback(host)
    if not settings.auth and not local:
        raise InvalidValue("serve", "host", host, "127.0.0.1, ::1 or localhost without authentication")
    url = parse_url(storage)
    if not local and url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise InvalidValue("serve", "host", host, TOKEN_FIRST)
    if settings.proxy is not None and not _is_address(settings.proxy):
        raise InvalidValue("serve", "proxy", settings.proxy, "the IP address from which the proxy connects")
    if settings.alert_url is not None and urlsplit(settings.alert_url).scheme not in ("http", "https"):
        raise InvalidValue("serve", "alert-url", settings.alert_url, "an address that begins with http:// or https://")
    with _until_stopped():
        _serve(storage, host, port, settings, local)
    with suppress(OSError):  # standard error may be closed
        shown = url.render_as_string()
        print(f"stopped; all acknowledged requests are stored in {shown}", file=sys.stderr, flush=True)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """End the block at SIGTERM or Ctrl-C; later signals are ignored.

    Uvicorn handles both while it runs, and raises them again when it has finished.
    """
    if threading.current_thread() is not threading.main_thread():  # signals cannot be handled
        yield
        return

    def stop(*_: Any) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    before = {each: signal.signal(each, stop) for each in STOP_SIGNALS}
    try:
        yield
    except Stopped:  # both signals stay ignored: the process is about to end
        return
    except BaseException:
        for each, handler in before.items():
            signal.signal(each, handler)
        raise


def _serve(storage: str, host: str, port: int, settings: Settings, local: bool) -> None:
    database = Database(
        storage, write=True, create=True, max_idle=IDLE * settings.timeout, accept_loss=settings.accept_loss
    )
    try:
        database.note_last(Journal(database).last_seq())
        if not local and not Auth(database).any():
            raise InvalidValue("serve", "host", host, TOKEN_FIRST)
        _warn_if_public(database.path)
        with _bind(host, port) as listening:
            compile_policies(JournalQueries(Journal(database)))
            _freeze_memory()
            listening.listen(BACKLOG)  # before the address is printed
            address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
            print(f"serving {database.display_url} at {address} (page and /v1; Ctrl-C stops)", flush=True)
            _log_to_stderr()
            app = make_app(database, settings)
            try:
                uvicorn.Server(uvicorn_config(app, settings)).run(sockets=[listening])
            finally:
                app.state.service.resources.close()  # uvicorn does not close them after a second Ctrl-C
    finally:
        database.close()


def uvicorn_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Return how uvicorn serves an application."""
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        backlog=BACKLOG,
        http=limited_protocol(_connection_limit(), settings.request_timeout, settings.max_body),
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        proxy_headers=settings.proxy is not None,  # otherwise a client could choose its address, and with it its limit
        forwarded_allow_ips=settings.proxy,
    )


def _connection_limit() -> int:
    """Raise the limit of open files as far as possible; return how many connections leave half of it to the rest."""
    import resource  # not on Windows

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # the kernel may not allow it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft // 2)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _warn_if_public(path: Path | None) -> None:
    """Warn if other users of the machine can read an SQLite storage; larl creates private ones."""
    if path is not None and path.stat().st_mode & 0o007:
        print(f"warning: all users of this machine can read {path}: chmod 600 {path}", file=sys.stderr, flush=True)


def _log_to_stderr() -> None:
    """Log to standard error, with times in UTC. The access log has its own times, because its lines are delayed."""
    logging.Formatter.converter = time.gmtime
    line = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, format=line, datefmt="%Y-%m-%dT%H:%M:%S", level=logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    ACCESS_LOG.handlers = [handler]
    ACCESS_LOG.propagate = False


def _freeze_memory() -> None:
    """Exclude present objects from garbage collection and collect rarely: all requests wait meanwhile."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def compile_policies(queries: JournalQueries) -> None:
    """Compile the policies of open studies before the first request."""
    for name in queries.journal.study_names():
        try:
            study = queries.state(name)
        except DamagedRow as damage:  # its requests are refused; other studies are not affected
            print(f"study {name} cannot be used: {damage}", file=sys.stderr, flush=True)
            continue
        if study.closed is None:
            print(f"compiling the policy of {name}", file=sys.stderr, flush=True)
            error = compile_policy(study.config)
            if error is not None:  # its decisions use the fallback probabilities; other studies are not affected
                reason = f"{type(error).__name__}: {error}"
                print(f"the policy of {name} cannot be compiled: {reason}", file=sys.stderr, flush=True)
                continue
            try:
                study.config.check_state_size()
            except InvalidValue as large:  # it was created before there was a limit, and goes on
                print(f"warning: the policy of {name} is large: {large}", file=sys.stderr, flush=True)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address; raise OSError if it is in use."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OSError(f"{host}:{port} cannot be served: {error.strerror}") from error
    return listening
