"""What a fit says, each number with its interval: drawn from the evidence over orders and each fit's uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl.diagnosis.brief import brief
from larl.diagnosis.fit import Fit, Setting, fit_tied
from larl.diagnosis.kernels import Floats, smooth
from larl.diagnosis.log import Log

DRAWS = 100
FURTHEST = 50  # steps that a forecast looks ahead
WORTH = (
    0.05  # a share of the reward's variance that is worth predicting, a share of steps that is worth a change of arm
)
MASS = 0.95
APART, BURN = 100, 200  # steps of simulated paths between units, and before the first


class Interval(NamedTuple):
    """A number and where it is with 95% probability."""

    value: float
    low: float
    high: float


def interval(sample: Floats) -> Interval:
    """The median and the middle 95% of a sample."""
    low, value, high = np.quantile(sample, [0.025, 0.5, 0.975])
    return Interval(float(value), float(low), float(high))


class Draw(NamedTuple):
    """One possible world of the log, and what follows from it."""

    order: int
    setting: Setting  # of one, along the leading axis
    share: float  # of the variance of rewards (given the arm) that is the state's
    forecasts: Floats  # (FURTHEST,) the share that the past predicts h = 1, 2, … steps ahead
    fixed: float  # what the best fixed arm of the log loses a step to knowing the state
    moved: float  # share of steps at which another arm is better than that one
    logged: float  # what the log's own choices lost a step to knowing the state
    z: Floats  # (rows,) smoothed
    variance: Floats  # (rows,)

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, repr=False)
class Estimates:
    """Everything that is drawn from the fits."""

    fits: Sequence[Fit]
    weights: Floats  # of the orders 0 … 10
    best: int  # the likeliest order
    orders: tuple[int, int]  # the shortest range of orders with 95% of the weight
    draws: Sequence[Draw]
    same_beta: float  # p-value of one β for all arms; nan where there is none or one arm
    one_step: float  # share of the log's own variance that the best fit predicted one step ahead

    def __repr__(self) -> str:
        return brief(self)

    def of(self, name: str) -> Interval:
        """The interval of one of a draw's numbers."""
        return interval(np.array([getattr(draw, name) for draw in self.draws]))

    @property
    def forecasts(self) -> Floats:
        """(draws, FURTHEST)."""
        return np.array([draw.forecasts for draw in self.draws])

    @property
    def reach(self) -> Interval:
        """How many steps ahead at least 5% of the reward's variance is predicted."""
        return interval((self.forecasts >= WORTH).cumprod(axis=1).sum(axis=1).astype(float))


def order_weights(fits: Sequence[Fit], drifting: bool) -> Floats:
    """Probability of each order, all equally likely beforehand; order 0, no drift, is out where drift was found."""
    evidence = np.array([fit.log_evidence for fit in fits])
    if drifting:
        evidence[0] = -math.inf
    weights = np.exp(evidence - evidence.max())
    result: Floats = weights / weights.sum()
    return result


def shortest_range(weights: Floats, mass: float = MASS) -> tuple[int, int]:
    """The shortest range of orders with at least `mass` of the weight; of equally short ones the weightiest."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    ranges = [
        (high - low, total[low] - total[high + 1], low, high)
        for low in range(weights.size)
        for high in range(low, weights.size)
        if total[high + 1] - total[low] >= mass - 1e-12
    ]
    _, _, low, high = min(ranges)
    return low, high


def estimate(log: Log, fits: Sequence[Fit], direction: Floats, drifting: bool, seed: int) -> Estimates:
    """All numbers, from DRAWS draws of order and parameters."""
    generator = np.random.default_rng([seed, 1])
    weights = order_weights(fits, drifting)
    best = int(weights.argmax())
    counts = np.bincount(generator.choice(weights.size, DRAWS, p=weights), minlength=weights.size)
    draws = [
        consider(log, fits[order], theta, generator)
        for order in np.flatnonzero(counts).tolist()
        for theta in fits[order].draws(int(counts[order]), generator)
    ]
    draws = [draws[i] for i in generator.permutation(DRAWS)]
    shown = max(fits[1:], key=lambda fit: fit.log_evidence)
    errors, _ = shown.model.predict(shown.theta[None])
    away = log.reward - shown.model.centre[log.arm]
    explained = 1.0 - float(np.sum(errors**2) / np.sum(away**2))
    return Estimates(
        fits,
        weights,
        best,
        shortest_range(weights),
        draws,
        _same_beta(shown, direction),
        explained,
    )


def _same_beta(fit: Fit, direction: Floats) -> float:
    """p-value of the likelihood ratio of one β for all arms against one for each."""
    from scipy.special import gammaincc

    arms = fit.model.log.arms
    if arms < 2:
        return math.nan
    tied = fit_tied(fit, direction)
    ratio = fit.model.log_likelihood(fit.theta) - tied.model.log_likelihood(tied.theta)
    return float(gammaincc((arms - 1) / 2.0, max(ratio, 0.0)))


def consider(log: Log, fit: Fit, theta: Floats, generator: np.random.Generator) -> Draw:
    """What follows from one setting of the parameters, and from one path of the state that goes with it."""
    setting = fit.model.setting(theta[None])
    one = _one(setting)
    z, spread, before = smoothed(log, log.reward, one, float(one.start))
    plays = log.plays / log.rows
    moving, total = float(plays @ one.beta**2), float(plays @ (one.beta**2 + one.variance))
    known = np.maximum(1.0 - forecast_variances(one.gammas, float(one.shock), before), 0.0)
    path = z + _error(log, one, generator)
    return Draw(
        fit.model.order,
        setting,
        moving / total,
        moving / total * known,
        *losses(log, one.mu, one.beta, path),
        z,
        np.maximum(spread, 0.0),
    )


def _one(setting: Setting) -> Any:
    """The first of several settings, its numbers as numbers."""
    return Setting(*(part[0] for part in setting))


def smoothed(log: Log, reward: Floats, one: Any, start: float) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of z at every row given all rewards, and the mean covariance of the state before a reward."""
    k = one.gammas.size
    z, spread, before = np.empty(log.rows), np.empty(log.rows), np.zeros((k, k))
    smooth(
        log.arm,
        log.gap,
        reward,
        one.gammas,
        one.acf,
        float(one.shock),
        one.mu,
        one.beta,
        one.variance,
        float(one.level),
        start,
        z,
        spread,
        before,
    )
    return z, spread, before


def _error(log: Log, one: Any, generator: np.random.Generator) -> Floats:
    """A draw of z less its smoothed mean: what smoothing misses in a log that is simulated (Durbin & Koopman 2002).

    One long path serves all units, with APART steps between them, and longer gaps are no longer than that.
    """
    from scipy.signal import lfilter

    step = np.cumsum(np.where(log.gap <= 0, APART, np.minimum(log.gap, APART))) + BURN
    shocks = math.sqrt(float(one.shock)) * generator.normal(size=int(step[-1]) + 1)
    z = lfilter([1.0], np.concatenate([[1.0], -one.gammas]), shocks)[step]
    level = math.sqrt(float(one.level)) * generator.normal(size=log.units)[log.unit]
    noise = np.sqrt(one.variance[log.arm]) * generator.normal(size=log.rows)
    reward = one.mu[log.arm] + one.beta[log.arm] * z + level + noise
    result: Floats = z - smoothed(log, reward, one, 1.0)[0]
    return result


def forecast_variances(gammas: Floats, shock: float, before: Floats) -> Floats:
    """Var z_{t+h−1} given the rewards before t, h = 1 … FURTHEST, where the state's covariance is `before`."""
    companion, cov, found = np.eye(gammas.size, k=-1), before, np.empty(FURTHEST)
    companion[0] = gammas
    for h in range(FURTHEST):
        found[h] = cov[0, 0]
        cov = companion @ cov @ companion.T
        cov[0, 0] += shock
    return found


class Losses(NamedTuple):
    """Over the rows of the log, on one path of the state: means of what is lost to knowing it."""

    fixed: float  # by the arm that is best on average
    moved: float  # share of rows at which another arm is better
    logged: float  # by the arms that were played


def losses(log: Log, mu: Floats, beta: Floats, z: Floats) -> Losses:
    """Means over rows t of max_a(μ_a + β_a z_t) less μ + βz_t of the arm in question."""
    best, arm = np.full(z.size, -np.inf), int(np.argmax(mu + beta * z.mean()))
    for other in range(mu.size):
        np.maximum(best, mu[other] + beta[other] * z, out=best)
    mine = mu[arm] + beta[arm] * z
    logged = best - mu[log.arm] - beta[log.arm] * z
    return Losses(float(np.mean(best - mine)), float(np.mean(best > mine)), float(logged.mean()))
