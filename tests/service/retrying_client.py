"""A client of the crash test: it repeats requests that fail, and notes what was acknowledged."""

import http.client
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.service.processes import Connection

UNITS = 3  # of each client in each study
STUDIES: dict[str, dict[str, Any]] = {
    "alone": {"policy": {"policy": "LARL", "s": 1}, "min_probability": 0.1, "max_delay": 5, "default_reward": 0.0},
    "pooled": {"policy": {"policy": "LARL", "s": 1}, "min_probability": 0.1, "max_delay": 5, "pooling": "partial"},
}


class RetryingClient(threading.Thread):
    """Requests decisions for its units and sends rewards until `stop` is set; repeats requests that fail.

    `noted` has what `note` returned after each acknowledged response: by default, the time.
    """

    def __init__(
        self,
        name: str,
        ports: Sequence[int],
        seed: int,
        note: Callable[[], float] = time.monotonic,
        timeout: float = 15.0,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._random = random.Random(f"{seed} {name}")
        self._connections = [Connection(port, timeout=timeout) for port in ports]
        self.sent: set[tuple[str, str, str]] = set()
        self.acknowledged: dict[tuple[str, str, str], bytes] = {}
        self.noted: dict[tuple[str, str, str], float] = {}
        self.retried, self.refused, self.changed, self._note = 0, 0, 0, note
        self.stop, self.abandon = threading.Event(), threading.Event()

    def run(self) -> None:
        pending: list[str] = []  # decisions without a reward
        count = 0
        while not self.stop.is_set():
            count += 1
            study = self._random.choice(list(STUDIES))
            unit = f"{self.name}-{self._random.randrange(UNITS)}"
            decision = self._request(study, "decision", f"{unit}-{count}", f"/v1/studies/{study}/decisions", unit=unit)
            if decision:
                pending.append(decision["id"])
            self._random.shuffle(pending)
            while len(pending) > self._random.randrange(6):
                self._reward(pending.pop())
            del pending[20:]
        for connection in self._connections:
            connection.__exit__()

    def _reward(self, decision: str) -> None:
        if self._random.random() < 0.9:  # some are never sent
            value = round(self._random.gauss(0.0, 1.0), 3)
            study = decision.partition(".")[0]
            key = f"{decision}-{self._random.getrandbits(32)}"
            self._request(study, "reward", key, f"/v1/decisions/{decision}/reward", value=value)

    def _request(self, study: str, kind: str, key: str, path: str, **body: Any) -> Any:
        """Send a request until it is answered; return the response, None if there is none before the end."""
        place, failures = (study, kind, key), 0
        self.sent.add(place)
        while not self.abandon.is_set():
            try:
                response = self._random.choice(self._connections).post(path, key=key, **body)
            except (OSError, http.client.HTTPException):
                response = None
            if response is not None and response.status == 200:
                return self._acknowledge(place, response.content, failures)
            if response is not None and response.status != 503:
                self.refused += 1
                print(f"{path} was refused: {response.status} {response.content!r}", file=sys.stderr)
                return None
            failures += 1
            self.abandon.wait(0.02 + 0.1 * self._random.random())
        return None

    def _acknowledge(self, place: tuple[str, str, str], content: bytes, failures: int) -> Any:
        self.noted.setdefault(place, self._note())
        self.retried += failures > 0
        self.changed += self.acknowledged.setdefault(place, content) != content
        return json.loads(content)
