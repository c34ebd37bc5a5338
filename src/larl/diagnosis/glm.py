"""The latent AR bandit of binary rewards and of counts, in the same coordinates as the Gaussian one.

η = μ_a + β_a z + u is the log odds of a binary reward, or the logarithm of the mean of a count. The spread s_a,
which is the unit of μ, β and the level, is 1.7 for binary rewards and √log(1 + variance/mean²) of the arm for counts.
Counts have one dispersion α = (s e^l)², where s is the mean spread. The likelihood is that of `assumed_density`.
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
HESSIAN_STEP, MIN_EIGENVALUE = 1e-3, 0.5
FILTERS = {"binary": BINARY, "count": COUNT}
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()  # of a standard normal variable


def mean_rewards(kind: str, eta: Floats) -> Floats:
    """Return E[r | η]."""
    result: Floats = expit(eta) if kind == "binary" else np.exp(np.minimum(eta, MAX_LOG_MEAN))
    return result


def reward_variances(kind: str, means: Floats, dispersion: Floats | float) -> Floats:
    """Return Var[r | η], given E[r | η]."""
    result: Floats = means * (1.0 - means) if kind == "binary" else means + dispersion * means**2
    return result


def population_average(kind: str, mu: Floats, beta: Floats, level: float) -> tuple[Floats, Floats]:
    """Return μ and β of a unit whose mean rewards are those of all units, averaged over levels N(0, `level`).

    Exact for counts and for the probit approximation of the logistic function.
    """
    if kind == "count":
        return mu + 0.5 * level, beta
    factor = 1.0 / np.sqrt(1.0 + level / PROBIT_SCALE**2)
    return mu * factor, beta * factor


@dataclass(frozen=True)
class GLMModel(Model):
    """A latent AR(order) bandit whose rewards depend on the state through a link function."""

    @property
    def kind(self) -> str:
        """ "binary" or "count"."""
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
        return predict_rewards(FILTERS[self.kind], log.arm, log.gap, log.reward, self.parameters(theta))

    def prediction_errors(self, theta: Floats) -> Floats:
        result: Floats = self.log.reward - self.predictions(theta[None]).mean[0]
        return result

    def log_likelihoods(self, theta: Floats) -> Floats:
        parts = [theta[i : i + SETTINGS_AT_ONCE] for i in range(0, len(theta), SETTINGS_AT_ONCE)]
        return np.concatenate([self.predictions(part).log_density.sum(axis=1) for part in parts])

    def gradient_and_information(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the log-posterior and the Fisher information, by numerical derivatives.

        Binary rewards: expected given the past. Counts: the sum of outer products of the scores.
        """
        moved = self.predictions(np.concatenate([theta[None], theta + DERIVATIVE_STEP * np.eye(theta.size)]))
        slopes = (moved.log_density[1:] - moved.log_density[0]) / DERIVATIVE_STEP
        mean, sd = self.prior
        gradient = slopes.sum(axis=1) - (theta - mean) / sd**2
        if self.kind == "binary":
            mean_slopes = (moved.mean[1:] - moved.mean[0]) / DERIVATIVE_STEP
            variance = np.maximum(moved.mean[0] * (1.0 - moved.mean[0]), 1e-300)
            information = np.einsum("it,jt->ij", mean_slopes / variance, mean_slopes)
        else:
            information = np.einsum("it,jt->ij", slopes, slopes)
        return gradient, information + np.diag(sd**-2.0)

    def precision(self, theta: Floats, information: Floats) -> Floats:
        """Return minus the second derivatives of the log-posterior, with eigenvalues of at least MIN_EIGENVALUE.

        In short logs of counts a few weights dominate if draws around the mode have the Fisher information instead.
        """
        gradient = self.gradient_and_information(theta)[0]
        moved = [self.gradient_and_information(theta + HESSIAN_STEP * row)[0] for row in np.eye(theta.size)]
        hessian = (gradient - np.array(moved)) / HESSIAN_STEP
        if not np.isfinite(hessian).all():
            return information
        eigenvalues, vectors = np.linalg.eigh((hessian + hessian.T) / 2.0)
        result: Floats = (vectors * np.maximum(eigenvalues, MIN_EIGENVALUE)) @ vectors.T
        return result

    def gaussian_form(self, theta: Floats) -> tuple[Log, Floats, Any]:
        """Return the linear Gaussian log whose Kalman filter makes the same updates: every row is an arm of its own."""
        log, one, told = self.log, first_setting(self.parameters(theta[None])), self.predictions(theta[None])
        rows = replace(log, arm=np.arange(log.rows))
        noise = np.maximum(told.innovation_variance[0] - told.eta_variance[0], 1e-12)
        form = one._replace(mu=one.mu[log.arm], beta=one.beta[log.arm], variance=noise)
        return rows, told.eta_mean[0] + told.innovation[0], form

    def variance_shares(self, parameters: Any, known: Floats) -> tuple[float, Floats]:
        plays = self.log.plays / self.log.rows
        mu, beta = self._population_average(parameters)
        means = mean_rewards(self.kind, mu[:, None] + beta[:, None] * _NODES)
        noise = float(plays @ (reward_variances(self.kind, means, parameters.variance[:, None]) @ _WEIGHTS))
        from_state = float(plays @ _variance(means))
        # z = √ρ·(what the past tells) + √(1 − ρ)·(the rest), where ρ is the known share.
        told, rest = np.sqrt(known)[:, None] * _NODES, np.sqrt(1.0 - np.minimum(known, 1.0))[:, None] * _NODES
        z = told[:, :, None] + rest[:, None, :]
        predictable = np.zeros(known.size)
        for arm in range(mu.size):
            predictable += plays[arm] * _variance(mean_rewards(self.kind, mu[arm] + beta[arm] * z) @ _WEIGHTS)
        total = max(from_state + noise, 1e-300)
        return from_state / total, predictable / total

    def regrets(self, parameters: Any, path: Floats) -> MeanRegrets:
        mu, beta = self._population_average(parameters)
        return regrets_of_means(self.log, mean_rewards(self.kind, mu[:, None] + beta[:, None] * path))

    def _population_average(self, parameters: Any) -> tuple[Floats, Floats]:
        """Return `population_average` of one setting."""
        return population_average(self.kind, parameters.mu, parameters.beta, float(parameters.level))


def _variance(values: Floats) -> Floats:
    """Return the variance over the last axis, which has the nodes of a standard normal variable."""
    mean = values @ _WEIGHTS
    result: Floats = np.maximum((values - mean[..., None]) ** 2 @ _WEIGHTS, 0.0)
    return result


@dataclass(frozen=True)
class BinaryModel(GLMModel):
    """Rewards are 0 or 1; η is the log odds."""

    @property
    def kind(self) -> str:
        return "binary"

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


@dataclass(frozen=True)
class CountModel(GLMModel):
    """Rewards are negative binomial counts; η is the logarithm of the mean."""

    @property
    def kind(self) -> str:
        return "count"

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
