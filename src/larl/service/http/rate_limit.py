"""Rate limits."""

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import NoReturn

from larl.service.core.problems import Problem

MAX_NAMES = 10_000  # after which full buckets are dropped; a bucket is full after two seconds
REFUSAL_DELAY = 1.0  # seconds, on average


async def refuse(problem: Problem) -> NoReturn:
    """Raise a problem after a random delay: clients that repeat refused requests at once would busy the service."""
    await asyncio.sleep(random.uniform(0.5, 1.5) * REFUSAL_DELAY)
    raise problem


@dataclass
class TokenBucket:
    """A bucket per name: it fills at `rate` per second, holds twice that, and each request takes its cost."""

    rate: float
    subject: str = "a token may make"
    unit: str = "requests"
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)  # time and content

    async def take(self, name: str, cost: float = 1.0) -> None:
        """Let a request pass, or raise 429."""
        now = time.monotonic()
        before, amount = self._buckets.get(name, (now, 2.0 * self.rate))
        amount = min(amount + self.rate * (now - before), 2.0 * self.rate)
        if amount < cost:
            accepted = f"{self.rate:g} {self.unit} a second"
            detail = f"too many {self.unit}: {self.subject} {accepted}; try again in a second"
            await refuse(Problem(429, detail, accepted=accepted))
        if len(self._buckets) > MAX_NAMES:
            self._buckets = {one: bucket for one, bucket in self._buckets.items() if now - bucket[0] < 2.0}
        self._buckets[name] = now, amount - cost
