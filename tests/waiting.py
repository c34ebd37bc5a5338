"""Wait for a condition instead of a fixed time, so that a slow machine does not fail a test."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE = 120.0  # seconds to wait for a condition
HANGS = 1200.0  # seconds until a command counts as hanging; compiling everything takes minutes
PAUSE = 0.05  # seconds between two calls


def eventually(
    find: Callable[[], Value], wanted: object = True, *, seconds: float = PATIENCE, details: Callable[[], str] = str
) -> Value:
    """Call ``find`` until it returns ``wanted`` and return that value.

    Parameters
    ----------
    find : callable
        Reads the value. It is called repeatedly, in this thread.
    wanted : object, default True
        The value to wait for. With ``True`` any true value is enough.
    seconds : float
        Deadline.
    details : callable
        Returns more text for the error message.

    Raises
    ------
    AssertionError
        The deadline has passed. The message shows the last value seen.
    """
    end = time.monotonic() + seconds
    while True:
        value = find()
        if value == wanted or (wanted is True and value):
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:g} s for {wanted!r}; the last value was {value!r}. {details()}")
        time.sleep(PAUSE)
