"""SIGINT is deferred to the end of a critical section."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from larl._core.interrupt import DeferInterrupt

pytestmark = pytest.mark.timing


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest's parent may ignore it
    yield
    signal.signal(signal.SIGINT, previous)


def test_interrupt_is_raised_after_the_block() -> None:
    done: list[str] = []

    def work() -> None:
        with DeferInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_second_interrupt_is_raised_at_once() -> None:
    done: list[str] = []

    def work() -> None:
        with DeferInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("before")
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["before"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nested_block_defers_to_the_outer_one() -> None:
    done: list[str] = []

    def work() -> None:
        with DeferInterrupt():
            with DeferInterrupt():
                os.kill(os.getpid(), signal.SIGINT)
                done.append("within")
            done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["within", "after"]


def test_error_in_the_block_is_raised() -> None:
    with pytest.raises(ValueError, match="wrong"), DeferInterrupt():
        raise ValueError("wrong")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_custom_handlers_and_other_threads_are_not_affected() -> None:
    received: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        with DeferInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
        assert received == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, previous)

    def work() -> None:
        with DeferInterrupt():
            received.append(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert received == [signal.SIGINT, 0]
