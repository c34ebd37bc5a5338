"""A peer that stops itself while it holds the journal's lock, and repeats its request when it is continued.

Arguments: the storage, and the seconds after which the server ends an idle transaction. It prints a line of JSON: the
error of the first try, and the decision of the second.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from larl.service.storage import journal
from larl.service.storage.database import StorageError
from tests.service.host import hosts
from tests.waiting import eventually


def until_stored(send: Callable[[], Any]) -> Any:
    """Repeat a command until the storage does not refuse it; return its response."""

    def send_once() -> Any:
        with suppress(StorageError):
            return send()

    return eventually(send_once)


def _stop_under_lock() -> None:
    """Let the next transaction that has the journal's lock stop this process."""
    acquire = journal.acquire_journal

    def acquire_and_stop(connection: Any) -> None:
        acquire(connection)
        journal.acquire_journal = acquire
        os.kill(os.getpid(), signal.SIGSTOP)

    journal.acquire_journal = acquire_and_stop


if __name__ == "__main__":
    with hosts(sys.argv[1], max_idle=float(sys.argv[2])) as [host]:
        until_stored(lambda: host.decide("u", "before"))  # to compile the policy takes longer than a transaction may
        _stop_under_lock()
        try:
            host.decide("u", "frozen")
            failure = ""
        except StorageError as error:
            failure = error.reason
        print(json.dumps([failure, host.decide("u", "frozen")]))
