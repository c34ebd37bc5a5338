"""Is the reward drifting beyond noise? A permutation test of constant arm means against a latent AR process.

With a latent process the product of residuals ℓ steps apart has expectation β_a β_b Cov(z_t, z_{t−ℓ}), where a and b
are the arms played. C_ℓ is the matrix of sums of these products for each pair of arms, divided by the square root of
their plays. It is close to a multiple of ββᵀ. β is unknown, so the statistics are largest eigenvalues of combinations
of the C_ℓ. Weights φ^ℓ for several φ detect persistence and alternation; sums of C_ℓ² detect any other memory.

If one value is frequent, as in binary rewards, counts and rewards that are often 0, two things change, because a policy
that reacts to such rewards pairs rare values in a way that permutations do not (`residuals_of_frequent_values`,
`studentise`).
"""

import math
from typing import NamedTuple

import numpy as np

from larl.diagnosis.kernels import Floats, Ints, pair_sums, permuted_pair_sums
from larl.diagnosis.log import Log
from larl.diagnosis.short_repr import short_repr

DECAY_RATES = (0.95, 0.8, 0.5, -0.5, -0.9)  # φ
SQUARED_LAGS = (5, 10)  # numbers of lags whose squares are summed
LAGS = 10
PERMUTATIONS, FEWER_PERMUTATIONS = 999, 199  # the latter if the log exceeds one of the next two limits
MANY_ARMS, MANY_ROWS = 20, 20_000
# The test is not exact for logs of policies that react to rewards. This level keeps their error rate below 0.05.
SIGNIFICANCE_LEVEL = 0.025
MIN_DEGREES_OF_FREEDOM = 20  # with fewer there is no test
FREQUENT_SHARE = 0.1  # of the rewards; a value with at least this share is frequent


class Drift(NamedTuple):
    """Result of the test."""

    p_value: float  # nan if there is too little data
    degrees_of_freedom: int  # rewards minus one for each arm of each unit
    rewards_needed: int  # for a power of 80% if the observed drift is real; 0 if unknown
    lags: Floats  # (LAGS,) autocorrelation in the direction of the strongest memory
    band: Floats  # (2, LAGS) its range in 95% of logs without drift
    direction: Floats  # (arms,) estimate of the direction of β

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def verdict(self) -> str:
        """ "drift", "none" or "unknown"."""
        if math.isnan(self.p_value):
            return "unknown"
        return "drift" if self.p_value <= SIGNIFICANCE_LEVEL else "none"


def cells_of(log: Log) -> tuple[Ints, Ints]:
    """Return the rows sorted by cell (unit and arm), and the position at which each cell begins."""
    cell = log.unit * log.arms + log.arm
    order = np.argsort(cell, kind="stable")
    first = np.flatnonzero(np.diff(cell[order], prepend=-1, append=cell.max() + 1))
    return order.astype(np.int64), first.astype(np.int64)


def residuals(log: Log) -> tuple[Floats, int]:
    """Return the standardised residuals and their degrees of freedom.

    A residual is the reward minus the mean of its unit and arm, divided by the arm's standard deviation.
    """
    order, first = cells_of(log)
    size = np.diff(first)
    by_cell = log.reward[order]
    # Centred twice: a large offset loses digits in the first pass.
    centred = by_cell - np.repeat(np.add.reduceat(by_cell, first[:-1]) / size, size)
    centred = centred - np.repeat(np.add.reduceat(centred, first[:-1]) / size, size)
    result = np.empty(log.rows)
    result[order] = centred
    squares = np.bincount(log.arm, result**2, log.arms)
    degrees = np.bincount(log.arm[order[first[:-1]]], size - 1, log.arms)
    sd = np.sqrt(squares / np.maximum(degrees, 1))
    rounding = 1e-9 * np.abs(rewards_without_offset(log)).max()
    sd = np.where(sd > rounding, sd, 0.0)
    divisor = np.where(sd > 0.0, sd, 1.0)[log.arm]
    return np.where(sd[log.arm] > 0.0, result / divisor, 0.0), int(degrees[sd > 0.0].sum())


def rewards_without_offset(log: Log) -> Floats:
    """Return the rewards minus the first one of their arm: exactly 0 if all of an arm are equal."""
    return np.asarray(log.reward - log.reward[np.unique(log.arm, return_index=True)[1]][log.arm])


def has_frequent_value(log: Log) -> bool:
    """Whether one value makes up at least 10% of the rewards, as they are in the log."""
    return bool(np.unique(log.observed_rewards, return_counts=True)[1].max() >= FREQUENT_SHARE * log.rows)


def residuals_of_frequent_values(log: Log) -> Floats:
    """Return residuals from means of each unit and arm that are shrunk towards the mean of the arm.

    In a short log of a unit the mean of its own rewards depends on what the policy did after a rare reward. The weight
    of a unit's own mean is τ²/(τ² + σ²/n), with n its rewards and τ² the variance between units. The weights depend on
    nothing that permutations within cells change, so the test stays exact if actions do not depend on rewards.
    """
    order, first = cells_of(log)
    size, arm = np.diff(first), log.arm[order[first[:-1]]]
    by_cell = rewards_without_offset(log)[order]
    by_cell /= float(np.abs(by_cell).max()) or 1.0
    own = np.add.reduceat(by_cell, first[:-1]) / size
    squares = np.add.reduceat((by_cell - np.repeat(own, size)) ** 2, first[:-1])
    plays, cells = np.bincount(arm, size, log.arms), np.bincount(arm, minlength=log.arms)
    mean = np.bincount(arm, size * own, log.arms) / np.maximum(plays, 1)
    variance = np.bincount(arm, squares, log.arms) / np.maximum(plays - cells, 1)
    between = np.bincount(arm, size * (own - mean[arm]) ** 2, log.arms) - (cells - 1) * variance
    spread = plays - np.bincount(arm, size**2, log.arms) / np.maximum(plays, 1)
    tau_squared = np.maximum(between, 0.0) / np.maximum(spread, 1e-9)
    weight = tau_squared[arm] / np.maximum(tau_squared[arm] + variance[arm] / size, 1e-300)
    result, sd = np.empty(log.rows), np.sqrt(variance)
    result[order] = by_cell - np.repeat(mean[arm] + weight * (own - mean[arm]), size)
    return np.where(sd[log.arm] > 1e-9, result / np.maximum(sd[log.arm], 1e-9), 0.0)


def studentise(sums: Floats, squares: Floats, counts: Floats) -> Floats:
    """Return sums of products, divided by the root of their mean squared product.

    A policy that stays after a rare success always pairs the success, a large residual, with the next reward. The
    variance of such sums is larger than that of their permutations; after this step it is equal.
    """
    scale = np.sqrt(counts / np.maximum(squares, 1e-300))
    return np.where(squares > 1e-12 * counts, sums * scale, 0.0)


def statistics(sums: Floats, plays: Ints) -> Floats:
    """Return (logs, statistics) for the pair sums of several logs. Larger values indicate more drift."""
    scale = 1.0 / np.sqrt(np.maximum(plays, 1))
    scaled = sums * scale[:, None] * scale
    scaled = (scaled + np.swapaxes(scaled, -1, -2)) / 2.0
    power = np.arange(1, sums.shape[1] + 1)
    matrices = [np.einsum("l,nlab->nab", np.sign(rate) ** power * abs(rate) ** power, scaled) for rate in DECAY_RATES]
    squared = np.cumsum(scaled @ scaled, axis=1)
    matrices += [squared[:, lags - 1] for lags in SQUARED_LAGS]
    return np.stack([np.linalg.eigvalsh(each)[:, -1] for each in matrices], axis=1)


def min_p_value(values: Floats) -> float:
    """Return the p-value of the first log, whose other rows are permutations: the minimum over all statistics.

    Each log is ranked in each statistic, and its best rank is compared with the best ranks of all logs. Ties are broken
    by the largest distance from the mean, in standard deviations. Exact if the rows of a cell are exchangeable.
    """
    ordered = np.sort(values, axis=0)
    columns = range(values.shape[1])
    ranks = [values.shape[0] - np.searchsorted(ordered[:, i], values[:, i], side="left") for i in columns]
    best = np.min(ranks, axis=0)
    distance = ((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-300)).max(axis=1)
    return float(np.mean((best < best[0]) | ((best == best[0]) & (distance >= distance[0]))))


def find_drift(log: Log, seed: int = 0) -> Drift:
    """Run the test with 999 permutations of the rewards within each arm of each unit; 199 for large logs."""
    residual, degrees_of_freedom = residuals(log)
    is_studentised = has_frequent_value(log)
    if is_studentised:
        residual = residuals_of_frequent_values(log)
    order, first = cells_of(log)
    is_small = log.arms <= MANY_ARMS and log.rows <= MANY_ROWS
    sums = np.zeros((1 + (PERMUTATIONS if is_small else FEWER_PERMUTATIONS), LAGS, log.arms, log.arms))
    pair_sums(log.arm, log.gap, LAGS, residual, sums[0])
    if degrees_of_freedom < MIN_DEGREES_OF_FREEDOM or not sums[0].any():
        empty = np.full(LAGS, np.nan)
        return Drift(
            p_value=math.nan,
            degrees_of_freedom=degrees_of_freedom,
            rewards_needed=0,
            lags=empty,
            band=np.stack([empty, empty]),
            direction=np.ones(log.arms),
        )
    permuted_pair_sums(log.arm, log.gap, order, first, LAGS, residual, seed, sums[1:])
    values = statistics(_studentise_all(log, residual, seed, sums) if is_studentised else sums, log.plays)
    direction = _direction(sums[0], log.plays)
    lags = _autocorrelation(sums, log, direction)
    return Drift(
        p_value=min_p_value(values),
        degrees_of_freedom=degrees_of_freedom,
        rewards_needed=_rewards_needed(values, degrees_of_freedom),
        lags=lags[0],
        band=np.quantile(lags[1:], [0.025, 0.975], axis=0),
        direction=direction,
    )


def _studentise_all(log: Log, residual: Floats, seed: int, sums: Floats) -> Floats:
    """Return the studentised pair sums of the log and of its permutations. Equal seeds give equal permutations."""
    squares, counts = np.zeros(sums.shape), np.zeros(sums.shape[1:])
    pair_sums(log.arm, log.gap, LAGS, residual**2, squares[0])
    permuted_pair_sums(log.arm, log.gap, *cells_of(log), LAGS, residual**2, seed, squares[1:])
    pair_sums(log.arm, log.gap, LAGS, np.ones(log.rows), counts)
    return studentise(sums, squares, counts)


def _direction(sums: Floats, plays: Ints) -> Floats:
    """Return an estimate of β's direction: the vector with the largest sum of squares over lags; maximum 1."""
    scale = 1.0 / np.sqrt(np.maximum(plays, 1))
    scaled = sums * scale[:, None] * scale
    scaled = (scaled + np.swapaxes(scaled, -1, -2)) / 2.0
    vector = np.linalg.eigh((scaled @ scaled).sum(axis=0))[1][:, -1] * scale
    largest = vector[np.abs(vector).argmax()]
    result: Floats = vector / largest
    return result


def _autocorrelation(sums: Floats, log: Log, direction: Floats) -> Floats:
    """Return Σ v_a v_b e_t e_{t−ℓ} / Σ v_a² v_b² at each lag ℓ, for the pair sums of each log."""
    counts = np.zeros((LAGS, log.arms, log.arms))
    pair_sums(log.arm, log.gap, LAGS, np.ones(log.rows), counts)
    weight = np.multiply.outer(direction, direction)
    result: Floats = np.einsum("nlab,ab->nl", sums, weight) / np.maximum(
        np.einsum("lab,ab->l", counts, weight**2), 1e-300
    )
    return result


def _rewards_needed(values: Floats, degrees_of_freedom: int) -> int:
    """Return the number of rewards at which the strongest statistic exceeds its 95% limit with probability 80%.

    Its distance from the permutations, in standard deviations, grows with the square root of the number of rewards.
    """
    others = values[1:]
    distance = float(((values[0] - others.mean(axis=0)) / np.maximum(others.std(axis=0), 1e-300)).max())
    return math.ceil(degrees_of_freedom * ((1.96 + 0.84) / distance) ** 2) if distance > 0.1 else 0
