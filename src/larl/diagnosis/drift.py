"""Is the reward drifting beyond noise? A permutation test of arms that stand still against a latent AR process.

Under a latent process the residuals of rows ℓ steps apart have the expected product β_a β_b Cov(z_t, z_{t−ℓ}), a and b
the arms played. So C_ℓ, the sums of these products for each pair of arms (divided by the root of their plays), is close
to a multiple of ββᵀ. β is unknown: the largest eigenvalue of a combination of the C_ℓ looks in the direction where most
is to be seen. Combinations φ^ℓ for several φ see persistence and alternation, sums of squares C_ℓ² any other memory.
"""

import math
from typing import NamedTuple

import numpy as np

from larl.diagnosis.brief import brief
from larl.diagnosis.kernels import Floats, Ints, pair_sums, shuffled_sums
from larl.diagnosis.log import Log

RATES = (0.95, 0.8, 0.5, -0.5, -0.9)  # φ
SQUARES = (5, 10)  # lags whose squares are summed
LAGS = 10
SHUFFLES, FEWER = 999, 199  # permutations; fewer with more arms or rows than these
MANY_ARMS, MANY_ROWS = 20, 20_000
LEVEL = (
    0.025  # below 0.05, so that logs of policies that react to rewards, for which the test is not exact, stay below it
)
FEWEST = 20  # rewards beyond one for each cell, below which nothing is said


class Drift(NamedTuple):
    """What the test found."""

    p_value: float  # nan where there is too little data
    free: int  # rewards less one for each arm of each unit
    needed: int  # rewards at which a drift of the size seen would be found four times in five; 0 if unknown
    lags: Floats  # (LAGS,) autocorrelation in the direction where most is to be seen
    band: Floats  # (2, LAGS) where it would be in 95% of logs without drift
    direction: Floats  # (arms,) that direction

    def __repr__(self) -> str:
        return brief(self)

    @property
    def verdict(self) -> str:
        """drift, none, or unknown."""
        if math.isnan(self.p_value):
            return "unknown"
        return "drift" if self.p_value <= LEVEL else "none"


def cells_of(log: Log) -> tuple[Ints, Ints]:
    """Rows arm by arm of every unit, and where each such cell begins."""
    cell = log.unit * log.arms + log.arm
    order = np.argsort(cell, kind="stable")
    first = np.flatnonzero(np.diff(cell[order], prepend=-1, append=cell.max() + 1))
    return order.astype(np.int64), first.astype(np.int64)


def residuals(log: Log) -> tuple[Floats, int]:
    """Rewards less the mean of their unit and arm, in units of the arm's standard deviation, and how many are free."""
    order, first = cells_of(log)
    size = np.diff(first)
    sorted_ = log.reward[order]
    # Twice, so that what a large offset cost in digits is made good.
    away = sorted_ - np.repeat(np.add.reduceat(sorted_, first[:-1]) / size, size)
    away = away - np.repeat(np.add.reduceat(away, first[:-1]) / size, size)
    result = np.empty(log.rows)
    result[order] = away
    squares = np.bincount(log.arm, result**2, log.arms)
    free = np.bincount(log.arm[order[first[:-1]]], size - 1, log.arms)
    sd = np.sqrt(squares / np.maximum(free, 1))
    tiny = 1e-9 * np.abs(log.reward).max()  # what rounding alone may leave
    sd = np.where(sd > tiny, sd, 0.0)
    usable = np.where(sd > 0.0, sd, 1.0)[log.arm]
    return np.where(sd[log.arm] > 0.0, result / usable, 0.0), int(free[sd > 0.0].sum())


def statistics(sums: Floats, plays: Ints) -> Floats:
    """Of logs (the leading axis) with these sums over pairs: (logs, statistics), the larger the more drift."""
    scale = 1.0 / np.sqrt(np.maximum(plays, 1))
    scaled = sums * scale[:, None] * scale
    scaled = (scaled + np.swapaxes(scaled, -1, -2)) / 2.0
    power = np.arange(1, sums.shape[1] + 1)
    wanted = [np.einsum("l,nlab->nab", np.sign(rate) ** power * abs(rate) ** power, scaled) for rate in RATES]
    squared = np.cumsum(scaled @ scaled, axis=1)
    wanted += [squared[:, lags - 1] for lags in SQUARES]
    return np.stack([np.linalg.eigvalsh(each)[:, -1] for each in wanted], axis=1)


def p_value(found: Floats) -> float:
    """Of the first of many logs, the others shuffled: that of the smallest p-value over all statistics.

    Each log is ranked among all in each statistic, and the least of its ranks again among all logs' least; of equals
    the one is first that is furthest out in standard deviations. Exact where the rows of a cell are exchangeable.
    """
    ordered = np.sort(found, axis=0)
    above = [found.shape[0] - np.searchsorted(ordered[:, i], found[:, i], side="left") for i in range(found.shape[1])]
    least = np.min(above, axis=0)
    out = ((found - found.mean(axis=0)) / np.maximum(found.std(axis=0), 1e-300)).max(axis=1)
    return float(np.mean((least < least[0]) | ((least == least[0]) & (out >= out[0]))))


def find_drift(log: Log, seed: int = 0) -> Drift:
    """The test, with 999 permutations of the rewards within each arm of each unit; 199 in large logs."""
    away, free = residuals(log)
    order, first = cells_of(log)
    shuffles = SHUFFLES if log.arms <= MANY_ARMS and log.rows <= MANY_ROWS else FEWER
    sums = np.zeros((1 + shuffles, LAGS, log.arms, log.arms))
    pair_sums(log.arm, log.gap, LAGS, away, sums[0])
    if free < FEWEST or not sums[0].any():
        empty = np.full(LAGS, np.nan)
        return Drift(math.nan, free, 0, empty, np.stack([empty, empty]), np.ones(log.arms))
    shuffled_sums(log.arm, log.gap, order, first, LAGS, away, seed, sums[1:])
    found = statistics(sums, log.plays)
    p = p_value(found)
    direction = _direction(sums[0], log.plays)
    lags = _autocorrelation(sums, log, direction)
    band = np.quantile(lags[1:], [0.025, 0.975], axis=0)
    return Drift(p, free, _needed(found, free), lags[0], band, direction)


def _direction(sums: Floats, plays: Ints) -> Floats:
    """The unit vector whose lags have the largest sum of squares, positive where it is largest: β's direction."""
    scale = 1.0 / np.sqrt(np.maximum(plays, 1))
    scaled = sums * scale[:, None] * scale
    scaled = (scaled + np.swapaxes(scaled, -1, -2)) / 2.0
    vector = np.linalg.eigh((scaled @ scaled).sum(axis=0))[1][:, -1] * scale
    largest = vector[np.abs(vector).argmax()]
    result: Floats = vector / largest
    return result


def _autocorrelation(sums: Floats, log: Log, direction: Floats) -> Floats:
    """Σ v_a v_b e_t e_{t−ℓ} / Σ v_a² v_b² at each lag ℓ, for each log of sums."""
    counts = np.zeros((LAGS, log.arms, log.arms))
    pair_sums(log.arm, log.gap, LAGS, np.ones(log.rows), counts)
    weight = np.multiply.outer(direction, direction)
    result: Floats = np.einsum("nlab,ab->nl", sums, weight) / np.maximum(
        np.einsum("lab,ab->l", counts, weight**2), 1e-300
    )
    return result


def _needed(found: Floats, free: int) -> int:
    """Rewards with which the statistic that sees most would exceed its 95% limit four times in five.

    Its distance from what shuffling gives, in standard deviations, grows as the root of the number of rewards.
    """
    others = found[1:]
    away = float(((found[0] - others.mean(axis=0)) / np.maximum(others.std(axis=0), 1e-300)).max())
    return math.ceil(free * ((1.96 + 0.84) / away) ** 2) if away > 0.1 else 0
