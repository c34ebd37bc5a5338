"""Filter the latent AR(k) process of a log of binary rewards or counts by assumed-density filtering.

The state is that of `smoother`: (z_t … z_{t−k+1}, u). A reward depends on it through η = μ_a + β_a z_t + u:
a binary reward is 1 with probability Φ(η/1.7), which differs from the logistic function by less than 0.01; a count is
negative binomial with mean e^η and variance e^η + α e^{2η}.

The belief before a row is normal, η ~ N(e, v). After the row it is replaced by the normal distribution with the same
mean and variance (Minka 2001): exactly for binary rewards, by adaptive quadrature for counts. With g and −w the first
two derivatives of log ∫ p(r | η) N(η; e, v) dη with respect to e, the step equals a Kalman update with the innovation
g/w of variance 1/w. These numbers are returned, so the Gaussian smoother also smooths binary rewards and counts.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner, kernel
from larl.statespace.kalman import measurement_update
from larl.statespace.smoother import ARParameters, advance, begin_unit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BINARY, COUNT = 0, 1
PROBIT_SCALE = 1.7
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
MAX_ETA = 300.0  # exp(2 MAX_ETA) is finite
MIN_CURVATURE, MIN_DISPERSION, MAX_DISPERSION = 1e-12, 1e-6, 1e6
MIN_VARIANCE = 1e-10  # of η; below, its distribution is a point
MAX_NEWTON_STEPS = 50
FAR_TAIL = -8.0  # below, Φ is its asymptotic series
_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(9)
NODES = tuple(_NODES.tolist())
LOG_WEIGHTS = tuple((np.log(_WEIGHTS) + _NODES**2).tolist())


class Predictions(NamedTuple):
    """What the filter says about each row before its reward; every array is (settings, rows)."""

    log_density: Floats  # log p(reward | earlier rewards)
    mean: Floats  # of the reward
    variance: Floats  # of the reward
    innovation: Floats  # of the equivalent Kalman update
    innovation_variance: Floats
    eta_mean: Floats  # e
    eta_variance: Floats  # v


@inline
def match_binary(reward: float, e: float, v: float) -> tuple[float, float, float]:
    """Return log p(reward), g and w of a binary reward."""
    sign = 1.0 if reward > 0.5 else -1.0
    scale = math.sqrt(PROBIT_SCALE * PROBIT_SCALE + v)
    u = sign * e / scale
    if u > FAR_TAIL:
        cdf = 0.5 * math.erfc(-u / math.sqrt(2.0))
        log_cdf = math.log(cdf)
        ratio = math.exp(-0.5 * u * u - LOG_SQRT_2PI) / cdf
    else:
        inverse = 1.0 / (u * u)
        ratio = -u / (1.0 - inverse * (1.0 - 3.0 * inverse))
        log_cdf = -0.5 * u * u - LOG_SQRT_2PI - math.log(ratio)
    return log_cdf, sign * ratio / scale, ratio * (u + ratio) / (scale * scale)


@inline
def count_log_density(count: float, eta: float, dispersion: float) -> float:
    """Return log p(count | η) without the terms that do not depend on η."""
    return count * eta - (count + 1.0 / dispersion) * math.log1p(dispersion * math.exp(eta))


@inline
def count_derivatives(count: float, eta: float, dispersion: float) -> tuple[float, float]:
    """Return the first derivative of log p(count | η) and minus the second."""
    odds = dispersion * math.exp(eta)
    share, size = odds / (1.0 + odds), count + 1.0 / dispersion
    return count - size * share, size * share / (1.0 + odds)


@inner
def match_count(count: float, e: float, v: float, dispersion: float) -> tuple[float, float, float]:
    """Return log p(count), g and w of a negative binomial count, by Gauss–Hermite quadrature around the mode of η."""
    size = 1.0 / dispersion
    constant = math.lgamma(count + size) - math.lgamma(size) - math.lgamma(count + 1.0) + count * math.log(dispersion)
    if v < MIN_VARIANCE:
        slope, curvature = count_derivatives(count, e, dispersion)
        return constant + count_log_density(count, e, dispersion), slope, curvature
    mode = max(e, math.log(max(count, 0.5)))  # Newton's method descends from here to the mode
    for _ in range(MAX_NEWTON_STEPS):
        slope, curvature = count_derivatives(count, mode, dispersion)
        step = (slope - (mode - e) / v) / (curvature + 1.0 / v)
        mode += step
        if abs(step) < 1e-9:
            break
    _, curvature = count_derivatives(count, mode, dispersion)
    width = math.sqrt(2.0 / (curvature + 1.0 / v))
    top = count_log_density(count, mode, dispersion) - 0.5 * (mode - e) ** 2 / v
    total, first, second = 0.0, 0.0, 0.0
    for i in range(len(NODES)):
        eta = mode + width * NODES[i]
        value = count_log_density(count, eta, dispersion) - 0.5 * (eta - e) ** 2 / v
        weight = math.exp(LOG_WEIGHTS[i] + value - top)
        total += weight
        first += weight * NODES[i]
        second += weight * NODES[i] * NODES[i]
    first /= total
    second = second / total - first * first
    log_density = constant + top + math.log(total * width) - LOG_SQRT_2PI - 0.5 * math.log(v)
    return log_density, (mode + width * first - e) / v, (v - width * width * second) / (v * v)


@kernel
def filter_rewards(
    kind: int, arm: Ints, gap: Ints, reward: Floats, parameters: ARParameters, predictions: Predictions
) -> None:
    """Set the predictions of every row, for each of several settings. `kind` is BINARY or COUNT.

    `parameters.variance` is the dispersion α of counts.
    """
    settings, k = parameters.gammas.shape
    mean, cov, row, cov_c = np.empty(k + 1), np.empty((k + 1, k + 1)), np.empty(k + 1), np.empty(k + 1)
    for setting in range(settings):
        for t in range(arm.size):
            if gap[t] <= 0:
                scale = parameters.start[setting] if gap[t] == 0 else 1.0
                begin_unit(mean, cov, parameters.acf[setting], scale, parameters.level[setting])
            for _ in range(gap[t]):
                advance(mean, cov, parameters.gammas[setting], parameters.shock[setting], row)
            a = arm[t]
            b = parameters.beta[setting, a]
            for i in range(k + 1):
                cov_c[i] = b * cov[i, 0] + cov[i, k]
            v = max(b * cov_c[0] + cov_c[k], 0.0)
            e = min(max(parameters.mu[setting, a] + b * mean[0] + mean[k], -MAX_ETA), MAX_ETA)
            if kind == BINARY:
                log_density, slope, curvature = match_binary(reward[t], e, v)
                expected = 0.5 * math.erfc(-e / math.sqrt(2.0 * (PROBIT_SCALE * PROBIT_SCALE + v)))
                predicted_variance = expected * (1.0 - expected)
            else:
                dispersion = min(max(parameters.variance[setting, a], MIN_DISPERSION), MAX_DISPERSION)
                log_density, slope, curvature = match_count(reward[t], e, v, dispersion)
                expected = math.exp(min(e + 0.5 * v, MAX_ETA))
                squared = math.exp(2.0 * min(e + v, MAX_ETA))
                predicted_variance = expected + (1.0 + dispersion) * squared - expected * expected
            curvature = max(curvature, MIN_CURVATURE)
            predictions.log_density[setting, t] = log_density
            predictions.mean[setting, t], predictions.variance[setting, t] = expected, predicted_variance
            predictions.innovation[setting, t] = slope / curvature
            predictions.innovation_variance[setting, t] = 1.0 / curvature
            predictions.eta_mean[setting, t], predictions.eta_variance[setting, t] = e, v
            measurement_update(mean, cov, cov_c, 1.0 / curvature, slope / curvature)


def predict_rewards(kind: int, arm: Ints, gap: Ints, reward: Floats, parameters: ARParameters) -> Predictions:
    """Return the predictions of every row, for each of several settings."""
    shape = (parameters.gammas.shape[0], arm.size)
    predictions = Predictions(*(np.empty(shape) for _ in Predictions._fields))
    filter_rewards(kind, arm, gap, reward, parameters, predictions)
    return predictions
