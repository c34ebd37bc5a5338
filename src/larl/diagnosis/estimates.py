"""What a fit says, each number with its interval: drawn from the evidence over orders and each fit's uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from larl._floor import best_mean
from larl.diagnosis._kernels import Floats, smooth
from larl.diagnosis.fit import Fit, Setting, fit_tied
from larl.diagnosis.log import Log

DRAWS = 100
FURTHEST = 50  # steps that a forecast looks ahead
WORTH = (
    0.05  # a share of the reward's variance that is worth predicting, a share of steps that is worth a change of arm
)
MASS = 0.95
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


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
    fixed: float  # what the best fixed arm loses a step to knowing the state
    moved: float  # share of steps at which another arm is better than the best fixed one
    logged: float  # what the log's own choices lost a step to knowing the state
    z: Floats  # (rows,) smoothed
    variance: Floats  # (rows,)


@dataclass(frozen=True)
class Estimates:
    """Everything that is drawn from the fits."""

    fits: Sequence[Fit]
    weights: Floats  # of the orders 0 … 10
    best: int  # the likeliest order
    orders: tuple[int, int]  # the shortest range of orders with 95% of the weight
    draws: Sequence[Draw]
    same_beta: float  # p-value of one β for all arms; nan where there is none or one arm
    one_step: float  # share of the log's own variance that the best fit predicted one step ahead

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
        consider(log, fits[order], theta)
        for order in np.flatnonzero(counts).tolist()
        for theta in fits[order].draws(int(counts[order]), generator)
    ]
    draws = [draws[i] for i in generator.permutation(DRAWS)]
    shown = max(fits[1:], key=lambda fit: fit.log_evidence)
    errors, _ = shown.model.predict(shown.theta[None])
    away = log.reward - shown.model.centre[log.arm]
    explained = 1.0 - float(np.sum(errors**2) / np.sum(away**2))
    return Estimates(
        fits, weights, best, shortest_range(weights), draws, _same_beta(shown, direction), explained,
    )  # fmt: skip


def _same_beta(fit: Fit, direction: Floats) -> float:
    """p-value of the likelihood ratio of one β for all arms against one for each."""
    from scipy.special import gammaincc

    arms = fit.model.log.arms
    if arms < 2:
        return math.nan
    tied = fit_tied(fit, direction)
    ratio = fit.model.log_likelihood(fit.theta) - tied.model.log_likelihood(tied.theta)
    return float(gammaincc((arms - 1) / 2.0, max(ratio, 0.0)))


def consider(log: Log, fit: Fit, theta: Floats) -> Draw:
    """What follows from one setting of the parameters."""
    setting = fit.model.setting(theta[None])
    k = setting.gammas.shape[1]
    mu, beta, variance = setting.mu[0], setting.beta[0], setting.variance[0]
    z, spread, before = np.empty(log.rows), np.empty(log.rows), np.zeros((k, k))
    smooth(
        log.arm, log.gap, log.reward, setting.gammas[0], setting.acf[0], float(setting.shock[0]), mu, beta, variance,
        float(setting.level[0]), float(setting.start[0]), z, spread, before,
    )  # fmt: skip
    plays = log.plays / log.rows
    moving, total = float(plays @ beta**2), float(plays @ (beta**2 + variance))
    known = np.maximum(1.0 - forecast_variances(setting.gammas[0], float(setting.shock[0]), before), 0.0)
    spread = np.maximum(spread, 0.0)
    return Draw(
        fit.model.order, setting, moving / total, moving / total * known,
        best_mean(mu, beta, 0.0, 1.0) - float(mu.max()), _moved(mu, beta), _logged(log, mu, beta, z, spread), z, spread,
    )  # fmt: skip


def forecast_variances(gammas: Floats, shock: float, before: Floats) -> Floats:
    """Var z_{t+h−1} given the rewards before t, h = 1 … FURTHEST, where the state's covariance is `before`."""
    companion, cov, found = np.eye(gammas.size, k=-1), before, np.empty(FURTHEST)
    companion[0] = gammas
    for h in range(FURTHEST):
        found[h] = cov[0, 0]
        cov = companion @ cov @ companion.T
        cov[0, 0] += shock
    return found


def _moved(mu: Floats, beta: Floats) -> float:
    """P(the best arm at z is not the best at z = 0), z ~ N(0, 1)."""
    grid = np.linspace(-4.0, 4.0, 2001)
    density = np.exp(-0.5 * grid**2)
    other = np.argmax(mu + np.multiply.outer(grid, beta), axis=1) != int(np.argmax(mu))
    return float(density[other].sum() / density.sum())


def _logged(log: Log, mu: Floats, beta: Floats, z: Floats, variance: Floats) -> float:
    """Mean over rows of E[max_a(μ_a + β_a z) − (μ + βz of the arm played)] under the smoothed law of z."""
    at = z[:, None] + np.sqrt(variance)[:, None] * NODES
    best = np.full(at.shape, -np.inf)
    for arm in range(mu.size):
        np.maximum(best, mu[arm] + beta[arm] * at, out=best)
    expected = best @ (WEIGHTS / WEIGHTS.sum())
    return float(np.mean(expected - mu[log.arm] - beta[log.arm] * z))
