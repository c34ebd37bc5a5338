"""Estimates with 95% intervals, from posterior draws over orders and parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl.diagnosis.fit import Fit, fit_tied
from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.model import first_setting
from larl.diagnosis.short_repr import short_repr
from larl.statespace.smoother import ARParameters, smooth

DRAWS = 100
MAX_FORECAST = 50  # steps ahead
MIN_SHARE = 0.05  # smallest relevant share: of the reward's variance, or of steps at which another arm is better
INTERVAL_MASS = 0.95
UNIT_SPACING, BURN_IN = 100, 200  # steps of a simulated path between units, and before the first unit


class Interval(NamedTuple):
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


def central_interval(sample: Floats) -> Interval:
    """Return the median and the central 95% of a sample."""
    low, value, high = np.quantile(sample, [0.025, 0.5, 0.975])
    return Interval(float(value), float(low), float(high))


class PosteriorDraw(NamedTuple):
    """One draw of order and parameters, and the quantities that follow from it."""

    order: int
    parameters: ARParameters  # with a leading axis of length 1
    state_share: float  # share of the variance of rewards (given the arm) that is due to the state
    forecasts: Floats  # (MAX_FORECAST,) share that is predictable h = 1, 2, … steps ahead
    fixed_arm_regret: float  # per step, of the best fixed arm, relative to knowing the state
    switch_share: float  # share of steps at which another arm is better than the best fixed arm
    log_regret: float  # per step, of the log's own choices, relative to knowing the state
    z: Floats  # (rows,) smoothed state
    variance: Floats  # (rows,) of the smoothed state
    kind: str = "continuous"  # of rewards

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, repr=False)
class Estimates:
    """All estimates from the fits."""

    fits: Sequence[Fit]
    weights: Floats  # posterior probability of the orders 0 … 10
    best: int  # the most probable order
    orders: tuple[int, int]  # the shortest range of orders with 95% of the probability
    draws: Sequence[PosteriorDraw]
    same_beta_p_value: float  # of one β for all arms; nan if there is one arm
    explained: float  # share of the log's variance that the best fit predicts one step ahead

    def __repr__(self) -> str:
        return short_repr(self)

    def interval_of(self, name: str) -> Interval:
        """Return the interval of a field of `PosteriorDraw`."""
        return central_interval(np.array([getattr(draw, name) for draw in self.draws]))

    @property
    def forecasts(self) -> Floats:
        """Forecasts of all draws, (draws, MAX_FORECAST)."""
        return np.array([draw.forecasts for draw in self.draws])

    @property
    def forecast_horizon(self) -> Interval:
        """Number of steps ahead for which at least 5% of the reward's variance is predictable."""
        return central_interval((self.forecasts >= MIN_SHARE).cumprod(axis=1).sum(axis=1).astype(float))


def order_weights(fits: Sequence[Fit], has_drift: bool) -> Floats:
    """Return the posterior probability of each order under a uniform prior. Order 0 has none if drift was detected."""
    evidence = np.array([fit.log_evidence for fit in fits])
    if has_drift:
        evidence[0] = -math.inf
    weights = np.exp(evidence - evidence.max())
    result: Floats = weights / weights.sum()
    return result


def shortest_range(weights: Floats, mass: float = INTERVAL_MASS) -> tuple[int, int]:
    """Return the shortest range of orders with at least `mass` of the weight; of equal lengths the heaviest."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    ranges = [
        (high - low, total[low] - total[high + 1], low, high)
        for low in range(weights.size)
        for high in range(low, weights.size)
        if total[high + 1] - total[low] >= mass - 1e-12
    ]
    _, _, low, high = min(ranges)
    return low, high


def estimate(log: Log, fits: Sequence[Fit], direction: Floats, has_drift: bool, seed: int) -> Estimates:
    """Return all estimates, from DRAWS posterior draws of order and parameters."""
    generator = np.random.default_rng([seed, 1])
    weights = order_weights(fits, has_drift)
    best = int(weights.argmax())
    counts = np.bincount(generator.choice(weights.size, DRAWS, p=weights), minlength=weights.size)
    draws = [
        summarise_draw(fits[order], theta, generator)
        for order in np.flatnonzero(counts).tolist()
        for theta in fits[order].draws(int(counts[order]), generator)
    ]
    draws = [draws[i] for i in generator.permutation(DRAWS)]
    best_fit = max(fits[1:], key=lambda fit: fit.log_evidence)
    errors = best_fit.model.prediction_errors(best_fit.theta)
    deviations = log.reward - best_fit.model.reward_centre[log.arm]
    return Estimates(
        fits=fits,
        weights=weights,
        best=best,
        orders=shortest_range(weights),
        draws=draws,
        same_beta_p_value=_same_beta_p_value(best_fit, direction),
        explained=1.0 - float(np.sum(errors**2) / np.sum(deviations**2)),
    )


def _same_beta_p_value(fit: Fit, direction: Floats) -> float:
    """Return the p-value of the likelihood ratio test of one β for all arms against one per arm."""
    from scipy.special import gammaincc

    arms = fit.model.log.arms
    if arms < 2:
        return math.nan
    tied = fit_tied(fit, direction)
    ratio = fit.model.log_likelihood(fit.theta) - tied.model.log_likelihood(tied.theta)
    return float(gammaincc((arms - 1) / 2.0, max(ratio, 0.0)))


def summarise_draw(fit: Fit, theta: Floats, generator: np.random.Generator) -> PosteriorDraw:
    """Return the quantities that follow from one draw of the parameters and one draw of the state's path."""
    model, parameters = fit.model, fit.model.parameters(theta[None])
    log, reward, gaussian = model.gaussian_form(theta)
    z, variance, predicted_cov = smooth_state(log, reward, gaussian)
    known = np.maximum(1.0 - forecast_variances(gaussian.gammas, float(gaussian.shock), predicted_cov), 0.0)
    state_share, forecasts = model.variance_shares(first_setting(parameters), known)
    path = z + _smoothing_error(log, gaussian, generator)
    regrets = model.regrets(first_setting(parameters), path)
    return PosteriorDraw(
        order=model.order,
        parameters=parameters,
        state_share=state_share,
        forecasts=forecasts,
        fixed_arm_regret=regrets.fixed_arm,
        switch_share=regrets.switch_share,
        log_regret=regrets.log,
        z=z,
        variance=np.maximum(variance, 0.0),
        kind=model.kind,
    )


def smooth_state(log: Log, reward: Floats, parameters: Any) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of z at every row given all rewards, and the average predicted covariance of z⃗."""
    k = parameters.gammas.size
    z, variance, predicted_cov = np.empty(log.rows), np.empty(log.rows), np.zeros((k, k))
    smooth(log.arm, log.gap, reward, parameters, z, variance, predicted_cov)
    return z, variance, predicted_cov


def _smoothing_error(log: Log, parameters: Any, generator: np.random.Generator) -> Floats:
    """Return a draw of z minus its smoothed mean, from a simulated log (Durbin & Koopman 2002).

    One long path covers all units, with UNIT_SPACING steps between them. Longer gaps are shortened to that length.
    """
    from scipy.signal import lfilter

    step = np.cumsum(np.where(log.gap <= 0, UNIT_SPACING, np.minimum(log.gap, UNIT_SPACING))) + BURN_IN
    shocks = math.sqrt(float(parameters.shock)) * generator.normal(size=int(step[-1]) + 1)
    z = lfilter([1.0], np.concatenate([[1.0], -parameters.gammas]), shocks)[step]
    level = math.sqrt(float(parameters.level)) * generator.normal(size=log.units)[log.unit]
    noise = np.sqrt(parameters.variance[log.arm]) * generator.normal(size=log.rows)
    reward = parameters.mu[log.arm] + parameters.beta[log.arm] * z + level + noise
    result: Floats = z - smooth_state(log, reward, parameters._replace(start=1.0))[0]
    return result


def forecast_variances(gammas: Floats, shock: float, predicted_cov: Floats) -> Floats:
    """Return Var z_{t+h−1} given the rewards before t, h = 1 … MAX_FORECAST, from the covariance of z⃗_t."""
    companion, cov, variances = np.eye(gammas.size, k=-1), predicted_cov, np.empty(MAX_FORECAST)
    companion[0] = gammas
    for h in range(MAX_FORECAST):
        variances[h] = cov[0, 0]
        cov = companion @ cov @ companion.T
        cov[0, 0] += shock
    return variances
