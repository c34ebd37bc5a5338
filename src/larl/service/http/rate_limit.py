"""Rate limits."""

import time
from dataclasses import dataclass, field

from larl.service.core.problems import Problem

MAX_NAMES = 10_000  # after which full buckets are dropped; a bucket is full after two seconds


@dataclass
class TokenBucket:
    """A bucket per name: it fills at `rate` per second, holds twice that, and each request takes one."""

    rate: float
    subject: str = "a token"
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)  # time and content

    def take(self, name: str) -> None:
        """Let a request pass, or raise 429."""
        now = time.monotonic()
        before, amount = self._buckets.get(name, (now, 2.0 * self.rate))
        amount = min(amount + self.rate * (now - before), 2.0 * self.rate)
        if amount < 1.0:
            detail = f"too many requests: {self.subject} may make {self.rate:g} a second; try again in a second"
            raise Problem(429, detail, accepted=f"{self.rate:g} requests a second")
        if len(self._buckets) > MAX_NAMES:
            self._buckets = {one: bucket for one, bucket in self._buckets.items() if now - bucket[0] < 2.0}
        self._buckets[name] = now, amount - 1.0
