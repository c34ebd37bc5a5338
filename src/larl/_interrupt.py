"""Ctrl-C at a moment at which it can be borne."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Uninterrupted:
    """Ctrl-C is heard when this is over, for work that is soon done; a second one at once.

    Within Python's thread pool it can leave a lock held, and then nobody gets any further, or let one go twice.
    """

    def __enter__(self) -> None:
        self._heard = False
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
            if self._before is not signal.default_int_handler:  # who handles it otherwise goes on to
                signal.signal(signal.SIGINT, self._before)
                self._before = None

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._heard and kind is None:
            raise KeyboardInterrupt

    def _hear(self, _: int, __: FrameType | None) -> None:
        if self._heard:
            raise KeyboardInterrupt
        self._heard = True
