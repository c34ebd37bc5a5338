"""Wait for a condition instead of for a time: a slow machine makes a test slower, never red."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE = 120.0  # seconds until a condition that does not become true is given up
HANGS = 3600.0  # seconds until a command is taken to hang: one that compiles everything takes minutes
PAUSE = 0.05  # seconds between two looks


def eventually(
    find: Callable[[], Value], wanted: object = True, *, seconds: float = PATIENCE, details: Callable[[], str] = str
) -> Value:
    """Call ``find`` until it returns ``wanted`` and return that value.

    Parameters
    ----------
    find : callable
        Reads the value. It is called again and again, from this thread.
    wanted : object, default True
        The value to wait for. With ``True`` any true value is enough.
    seconds : float
        Deadline. It only bounds a test that would wait for ever.
    details : callable
        More about the situation, for the message of a failure.

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
