"""Names of this machine, as addresses to listen at and in the header Host."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from larl.service.core.problems import Problem

LOOPBACK = "localhost, 127.0.0.1 or [::1], with or without a port"


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_loopback(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise 421 unless a request names this machine.

    A website can let its own name resolve to 127.0.0.1. Then a browser on this machine lets its scripts use a service
    that requires no token, but sends the website's name.
    """
    names = [value for name, value in headers if name == b"host"]
    if len(names) != 1 or not _is_loopback_header(names[0]):
        shown = b", ".join(names).decode("latin-1")
        detail = f"without authentication, Host = {shown!r} is not accepted; accepted: {LOOPBACK}"
        raise Problem(421, detail, field="Host", value=shown, accepted=LOOPBACK)


@lru_cache(1024)
def _is_loopback_header(value: bytes) -> bool:
    try:
        return is_loopback(urlsplit(f"//{value.decode('latin-1')}").hostname or "")
    except ValueError:
        return False
