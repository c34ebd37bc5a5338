"""Means over time, in a bounded number of buckets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

BUCKETS = 200
MAX_ARMS = 12  # that are shown apart
DECISIONS, KNOWN, PREDICTIONS, PREDICTED, REWARDS, REWARD_SUM, ARMS = range(7)  # columns; from ARMS on two per arm


class Series:
    """Sums over buckets of days or of steps. If there are too many buckets, each becomes twice as wide."""

    def __init__(self, arms: int) -> None:
        self.width, self.used, self._arms = 1, 0, arms
        self._sums = np.zeros((BUCKETS, ARMS + 2 * arms))

    def add_decision(self, place: int, arm: int | None, probabilities: Sequence[float], expected: float | None) -> None:
        """Add a decision at a day or step."""
        sums = self._bucket(place)
        sums[DECISIONS] += 1
        if arm is None:
            return
        sums[ARMS + arm] += 1
        if probabilities:
            sums[KNOWN] += 1
            sums[ARMS + self._arms :] += probabilities
        if expected is not None:
            sums[PREDICTIONS : PREDICTED + 1] += (1, expected)

    def change_reward(self, place: int, old: float | None, new: float | None) -> None:
        """Replace the reward of a decision at a day or step."""
        sums = self._bucket(place)
        if old is not None:
            sums[REWARDS : REWARD_SUM + 1] -= (1, old)
        if new is not None:
            sums[REWARDS : REWARD_SUM + 1] += (1, new)

    def _bucket(self, place: int) -> Any:
        while place // self.width >= BUCKETS:
            pairs = self._sums[0::2] + self._sums[1::2]
            self._sums[:] = 0.0
            self._sums[: len(pairs)] = pairs
            self.width, self.used = 2 * self.width, -(-self.used // 2)
        self.used = max(self.used, place // self.width + 1)
        return self._sums[place // self.width]

    def to_dict(self, order: Sequence[int]) -> dict[str, Any]:
        """Return columns, one number per bucket; arms in this order, all after the first MAX_ARMS − 1 in one."""
        sums, arms = self._sums[: self.used], self._arms
        chosen, probabilities = sums[:, ARMS : ARMS + arms], sums[:, ARMS + arms :]
        return {
            "width": self.width,
            "decisions": sums[:, DECISIONS].astype(int).tolist(),
            "shares": [_means(column, chosen.sum(axis=1)) for column in _grouped(chosen, order)],
            "probabilities": [_means(column, sums[:, KNOWN]) for column in _grouped(probabilities, order)],
            "reward": _means(sums[:, REWARD_SUM], sums[:, REWARDS]),
            "expected": _means(sums[:, PREDICTED], sums[:, PREDICTIONS]),
        }

    def choices(self) -> Any:
        """Return how often each arm was chosen."""
        return self._sums[:, ARMS : ARMS + self._arms].sum(axis=0)


def _grouped(columns: Any, order: Sequence[int]) -> list[Any]:
    """Return the columns of arms in this order, the last ones summed if there are many."""
    if len(order) <= MAX_ARMS:
        return [columns[:, arm] for arm in order]
    first, others = order[: MAX_ARMS - 1], order[MAX_ARMS - 1 :]
    return [columns[:, arm] for arm in first] + [columns[:, others].sum(axis=1)]


def six_digits(value: float) -> float:
    """Round to six digits, which is more than a chart shows."""
    return float(f"{value:.6g}")


def _means(total: Any, count: Any) -> list[float | None]:
    pairs = zip(total.tolist(), count.tolist(), strict=True)
    return [six_digits(one / many) if many else None for one, many in pairs]
