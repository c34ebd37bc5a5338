"""Ctrl-C at a moment at which it can be borne."""

import signal
import threading
from types import FrameType, TracebackType


class DeferInterrupt:
    """Ctrl-C is heard when this is over, for work that is soon done; a second one at once.

    Within Python's thread pool it can leave a lock held, and then nobody gets any further, or let one go twice.
    """

    def __enter__(self) -> None:
        self._heard = False
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # who handles it otherwise goes on to
        self._here = usual and threading.current_thread() is threading.main_thread()
        if self._here:
            signal.signal(signal.SIGINT, self._hear)

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._here:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._heard and kind is None:
            raise KeyboardInterrupt

    def _hear(self, _: int, __: FrameType | None) -> None:
        if self._heard:
            raise KeyboardInterrupt
        self._heard = True
