"""Means over time, in a bounded number of buckets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

BUCKETS = 200
MOST_ARMS = 12  # that are shown apart
DECISIONS, TOLD, HOPES, HOPED, REWARDS, REWARDED, ARMS = range(7)  # columns; of ARMS and after, two for each arm


class Series:
    """Sums over buckets of days or of steps. Where there are too many buckets, each becomes twice as wide."""

    def __init__(self, arms: int) -> None:
        self.width, self.used, self._arms = 1, 0, arms
        self._sums = np.zeros((BUCKETS, ARMS + 2 * arms))

    def decide(self, place: int, arm: int | None, odds: Sequence[float], expected: float | None) -> None:
        """A decision at a place: day or step."""
        sums = self._bucket(place)
        sums[DECISIONS] += 1
        if arm is None:
            return
        sums[ARMS + arm] += 1
        if odds:
            sums[TOLD] += 1
            sums[ARMS + self._arms :] += odds
        if expected is not None:
            sums[HOPES : HOPED + 1] += (1, expected)

    def reward(self, place: int, old: float | None, new: float | None) -> None:
        """The reward of a decision at a place is another one now."""
        sums = self._bucket(place)
        if old is not None:
            sums[REWARDS : REWARDED + 1] -= (1, old)
        if new is not None:
            sums[REWARDS : REWARDED + 1] += (1, new)

    def _bucket(self, place: int) -> Any:
        while place // self.width >= BUCKETS:
            pairs = self._sums[0::2] + self._sums[1::2]
            self._sums[:] = 0.0
            self._sums[: len(pairs)] = pairs
            self.width, self.used = 2 * self.width, -(-self.used // 2)
        self.used = max(self.used, place // self.width + 1)
        return self._sums[place // self.width]

    def shown(self, order: Sequence[int]) -> dict[str, Any]:
        """Columns, one number a bucket; of arms, those of `order`: all after MOST_ARMS − 1 of them in one."""
        sums, arms = self._sums[: self.used], self._arms
        chosen, odds = sums[:, ARMS : ARMS + arms], sums[:, ARMS + arms :]
        return {
            "width": self.width,
            "decisions": sums[:, DECISIONS].astype(int).tolist(),
            "shares": [_means(column, chosen.sum(axis=1)) for column in _together(chosen, order)],
            "probabilities": [_means(column, sums[:, TOLD]) for column in _together(odds, order)],
            "reward": _means(sums[:, REWARDED], sums[:, REWARDS]),
            "expected": _means(sums[:, HOPED], sums[:, HOPES]),
        }

    def chosen(self) -> Any:
        """How often each arm was."""
        return self._sums[:, ARMS : ARMS + self._arms].sum(axis=0)


def _together(columns: Any, order: Sequence[int]) -> list[Any]:
    """The columns of arms in this order, the last of them together where there are many."""
    if len(order) <= MOST_ARMS:
        return [columns[:, arm] for arm in order]
    apart = order[: MOST_ARMS - 1]
    return [columns[:, arm] for arm in apart] + [columns[:, order[MOST_ARMS - 1 :]].sum(axis=1)]


def short(value: float) -> float:
    """Six digits, which is more than a chart shows."""
    return float(f"{value:.6g}")


def _means(total: Any, count: Any) -> list[float | None]:
    return [short(one / many) if many else None for one, many in zip(total.tolist(), count.tolist(), strict=True)]
