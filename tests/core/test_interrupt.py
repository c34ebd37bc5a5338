"""Ctrl-C where it would do harm is heard a moment later."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from larl._core.interrupt import DeferInterrupt

pytestmark = pytest.mark.timing


@pytest.fixture(autouse=True)
def _as_usual() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    yield
    signal.signal(signal.SIGINT, before)


def test_it_is_heard_when_the_work_is_done() -> None:
    done: list[str] = []

    def work() -> None:
        with DeferInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_one_is_heard_at_once() -> None:
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


def test_within_another_the_outer_one_hears_it() -> None:
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


def test_what_goes_wrong_meanwhile_is_said() -> None:
    with pytest.raises(ValueError, match="wrong"), DeferInterrupt():
        raise ValueError("wrong")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_handles_it_otherwise_and_other_threads_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with DeferInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)

    def work() -> None:
        with DeferInterrupt():
            heard.append(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [signal.SIGINT, 0]
