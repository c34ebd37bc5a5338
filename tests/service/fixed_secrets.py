"""Secrets of studies in tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from larl.service.core import streams


@contextmanager
def fixed_secret(secret: bytes = bytes(streams.SECRET_SIZE)) -> Iterator[None]:
    """Give all new studies of this process the same secret."""
    with mock.patch.object(streams, "token_bytes", return_value=secret):
        yield
