"""The latent AR bandit of binary rewards and of counts, in the same coordinates as the Gaussian one.

η = μ_a + β_a z + u is the log odds of a binary reward, or the logarithm of the mean of a count. The spread s_a, in units
of which μ, β and the level are expressed, is 1.7 for binary rewards and √log(1 + variance/mean²) of the arm for counts.
Counts have one dispersion α = (s e^l)², where s is the mean spread. The likelihood is that of assumed-density filtering.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.model import DERIVATIVE_STEP, PRIORS, Model, first_setting
from larl.diagnosis.regrets import MeanRegrets, regrets_of_means
from larl.statespace.assumed_density import BINARY, COUNT, PROBIT_SCALE, Predictions, predict_rewards

SETTINGS_AT_ONCE = 100  # filtered together, which bounds memory
MIN_MEAN_COUNT, MIN_SPREAD = 1e-9, 1e-6
MAX_LOG_MEAN = 100.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()  # of a standard normal variable


@dataclass(frozen=True)
class GLMModel(Model):
    """A latent AR(order) bandit whose rewards depend on the state through a link function."""

    @property
    def filter_kind(self) -> int:
        """BINARY or COUNT."""
        raise NotImplementedError

    def mean_rewards(self, eta: Floats) -> Floats:
        """Return E[r | η]."""
        raise NotImplementedError

    def noise_variances(self, means: Floats, dispersion: Floats) -> Floats:
        """Return Var[r | η], given E[r | η]."""
        raise NotImplementedError

    def population_average(self, parameters: Any) -> tuple[Floats, Floats]:
        """Return μ and β of a unit whose mean rewards are those of all units, averaged over their levels."""
        raise NotImplementedError

    def information(self, mean_slopes: Floats, log_variance_slopes: Floats, variance: Floats) -> Floats:
        """Return the Fisher information of the rewards' predictive distributions, from derivatives of their moments."""
        raise NotImplementedError

    @cached_property
    def reward_centre(self) -> Floats:
        return np.bincount(self.log.arm, self.log.reward, self.log.arms) / np.maximum(self.log.plays, 1)

    @cached_property
    def reward_spread(self) -> Floats:
        squared = (self.log.reward - self.reward_centre[self.log.arm]) ** 2
        squares, plays = np.bincount(self.log.arm, squared, self.log.arms), self.log.plays
        pooled = squares.sum() / max(self.log.rows - self.log.arms, 1)
        result: Floats = np.sqrt((squares + 4.0 * pooled) / (np.maximum(plays - 1, 0) + 4.0))
        return result

    @cached_property
    def shrunk_means(self) -> Floats:
        """The mean reward of each arm, shrunk towards that of all arms with the weight of one play."""
        total, plays = np.bincount(self.log.arm, self.log.reward, self.log.arms), self.log.plays
        overall = (total.sum() + 0.5) / (plays.sum() + 1.0)
        result: Floats = (total + overall) / (plays + 1.0)
        return result

    def predictions(self, theta: Floats) -> Predictions:
        """Return the predictions of every reward at each of several coordinates."""
        log = self.log
        return predict_rewards(self.filter_kind, log.arm, log.gap, log.reward, self.parameters(theta))

    def prediction_errors(self, theta: Floats) -> Floats:
        result: Floats = self.log.reward - self.predictions(theta[None]).mean[0]
        return result

    def log_likelihoods(self, theta: Floats) -> Floats:
        parts = [theta[i : i + SETTINGS_AT_ONCE] for i in range(0, len(theta), SETTINGS_AT_ONCE)]
        return np.concatenate([self.predictions(part).log_density.sum(axis=1) for part in parts])

    def gradient_and_information(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the log-posterior and an expected Fisher information, by numerical derivatives."""
        moved = self.predictions(np.concatenate([theta[None], theta + DERIVATIVE_STEP * np.eye(theta.size)]))
        slopes = (moved.log_density[1:] - moved.log_density[0]) / DERIVATIVE_STEP
        mean_slopes = (moved.mean[1:] - moved.mean[0]) / DERIVATIVE_STEP
        variance = np.maximum(moved.variance, 1e-300)
        log_variance_slopes = np.log(variance[1:] / variance[0]) / DERIVATIVE_STEP
        mean, sd = self.prior
        gradient = slopes.sum(axis=1) - (theta - mean) / sd**2
        return gradient, self.information(mean_slopes, log_variance_slopes, variance[0]) + np.diag(sd**-2.0)

    def gaussian_form(self, theta: Floats) -> tuple[Log, Floats, Any]:
        """Return the linear Gaussian log whose Kalman filter makes the same updates: every row is an arm of its own."""
        log, one, told = self.log, first_setting(self.parameters(theta[None])), self.predictions(theta[None])
        rows = replace(log, arm=np.arange(log.rows))
        noise = np.maximum(told.innovation_variance[0] - told.eta_variance[0], 1e-12)
        form = one._replace(mu=one.mu[log.arm], beta=one.beta[log.arm], variance=noise)
        return rows, told.eta_mean[0] + told.innovation[0], form

    def variance_shares(self, parameters: Any, known: Floats) -> tuple[float, Floats]:
        plays = self.log.plays / self.log.rows
        mu, beta = self.population_average(parameters)
        means = self.mean_rewards(mu[:, None] + beta[:, None] * _NODES)
        noise = plays @ (self.noise_variances(means, parameters.variance[:, None]) @ _WEIGHTS)
        from_state = plays @ _variance(means)
        # z = √ρ·(what the past tells) + √(1 − ρ)·(the rest), where ρ is the known share.
        told, rest = np.sqrt(known)[:, None] * _NODES, np.sqrt(1.0 - np.minimum(known, 1.0))[:, None] * _NODES
        z = told[:, :, None] + rest[:, None, :]
        predictable = np.zeros(known.size)
        for arm in range(mu.size):
            predictable += plays[arm] * _variance(self.mean_rewards(mu[arm] + beta[arm] * z) @ _WEIGHTS)
        total = max(from_state + noise, 1e-300)
        return float(from_state / total), predictable / total

    def regrets(self, parameters: Any, path: Floats) -> MeanRegrets:
        mu, beta = self.population_average(parameters)
        return regrets_of_means(self.log, self.mean_rewards(mu[:, None] + beta[:, None] * path))


def _variance(values: Floats) -> Floats:
    """Return the variance over the last axis, which has the nodes of a standard normal variable."""
    mean = values @ _WEIGHTS
    result: Floats = np.maximum((values - mean[..., None]) ** 2 @ _WEIGHTS, 0.0)
    return result


@dataclass(frozen=True)
class BinaryModel(GLMModel):
    """Rewards are 0 or 1; η is the log odds."""

    @property
    def filter_kind(self) -> int:
        return BINARY

    @property
    def noise_coordinates(self) -> int:
        return 0

    @cached_property
    def centre(self) -> Floats:
        result: Floats = PROBIT_SCALE * ndtri(self.shrunk_means)
        return result

    @cached_property
    def spread(self) -> Floats:
        return np.full(self.log.arms, PROBIT_SCALE)

    def noise_variance(self, noise: Floats) -> Floats:
        return np.zeros((noise.shape[0], self.log.arms))

    def mean_rewards(self, eta: Floats) -> Floats:
        result: Floats = expit(eta)
        return result

    def noise_variances(self, means: Floats, dispersion: Floats) -> Floats:
        return means * (1.0 - means)

    def population_average(self, parameters: Any) -> tuple[Floats, Floats]:
        factor = 1.0 / np.sqrt(1.0 + parameters.level / PROBIT_SCALE**2)
        return parameters.mu * factor, parameters.beta * factor

    def information(self, mean_slopes: Floats, log_variance_slopes: Floats, variance: Floats) -> Floats:
        result: Floats = np.einsum("it,jt->ij", mean_slopes / variance, mean_slopes)
        return result


@dataclass(frozen=True)
class CountModel(GLMModel):
    """Rewards are negative binomial counts; η is the logarithm of the mean."""

    @property
    def filter_kind(self) -> int:
        return COUNT

    @property
    def noise_coordinates(self) -> int:
        return 1

    @property
    def priors(self) -> dict[str, tuple[float, float]]:
        return PRIORS | {"noise": (-1.0, 1.0)}

    @cached_property
    def centre(self) -> Floats:
        result: Floats = np.log(np.maximum(self.shrunk_means, MIN_MEAN_COUNT))
        return result

    @cached_property
    def spread(self) -> Floats:
        relative = self.reward_spread / np.maximum(self.shrunk_means, MIN_MEAN_COUNT)
        return np.maximum(np.sqrt(np.log1p(relative**2)), MIN_SPREAD)

    def noise_variance(self, noise: Floats) -> Floats:
        dispersion = (self.spread.mean() * np.exp(noise)) ** 2
        return np.ascontiguousarray(np.broadcast_to(dispersion, (noise.shape[0], self.log.arms)))

    def mean_rewards(self, eta: Floats) -> Floats:
        result: Floats = np.exp(np.minimum(eta, MAX_LOG_MEAN))
        return result

    def noise_variances(self, means: Floats, dispersion: Floats) -> Floats:
        return means + dispersion * means**2

    def population_average(self, parameters: Any) -> tuple[Floats, Floats]:
        return parameters.mu + 0.5 * parameters.level, parameters.beta

    def information(self, mean_slopes: Floats, log_variance_slopes: Floats, variance: Floats) -> Floats:
        result: Floats = np.einsum("it,jt->ij", mean_slopes / variance, mean_slopes)
        result += 0.5 * np.einsum("it,jt->ij", log_variance_slopes, log_variance_slopes)
        return result
