"""Defer SIGINT during critical sections."""

import signal
import threading
from types import FrameType, TracebackType


class DeferInterrupt:
    """A context manager that defers the first Ctrl-C to its end; a second one raises KeyboardInterrupt at once.

    A KeyboardInterrupt inside Python's thread pool can leave a lock held, or release it twice. The context manager does
    nothing outside the main thread, or if the handler of SIGINT is not Python's default.
    """

    def __enter__(self) -> None:
        self._was_interrupted = False
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._is_active = is_default and threading.current_thread() is threading.main_thread()
        if self._is_active:
            signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._is_active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._was_interrupted and kind is None:
            raise KeyboardInterrupt

    def _handle(self, _: int, __: FrameType | None) -> None:
        if self._was_interrupted:
            raise KeyboardInterrupt
        self._was_interrupted = True
