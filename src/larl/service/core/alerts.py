"""Alerts: issues are sent to a URL or a command, on a thread of their own."""

import json
import logging
import queue
import subprocess
import threading
import urllib.request
from typing import Any

LOG = logging.getLogger("larl.service")
TIMEOUT = 10.0  # seconds
CAPACITY = 1_000  # alerts that may wait


class Alerts:
    """Sends issues one after another. The command gets the issue on its standard input."""

    def __init__(self, url: str | None, command: str | None) -> None:
        self._url, self._command = url, command
        self._queue: queue.Queue[Any] = queue.Queue(CAPACITY)
        self._thread = threading.Thread(target=self._work, daemon=True, name="alerts")
        self._thread.start()

    def send(self, issue: dict[str, Any]) -> None:
        """Queue an issue."""
        LOG.warning("%s issue in %s: %s", issue["severity"], issue["study"], issue["code"])
        if self._url or self._command:
            try:
                self._queue.put_nowait(issue)
            except queue.Full:
                LOG.error("an alert was not sent: too many are waiting")

    def close(self) -> None:
        """Send what is waiting, within TIMEOUT seconds."""
        self._queue.put(None)
        self._thread.join(TIMEOUT)

    def _work(self) -> None:
        while (issue := self._queue.get()) is not None:
            body = json.dumps(issue).encode()
            try:
                if self._url:
                    kind = {"Content-Type": "application/json"}
                    urllib.request.urlopen(urllib.request.Request(self._url, body, kind), timeout=TIMEOUT).close()
                if self._command:
                    subprocess.run(self._command, shell=True, input=body, timeout=TIMEOUT, check=True)
            except Exception as error:  # whatever the receiver does, later alerts must be sent
                LOG.error("an alert was not sent: %s", type(error).__name__)
