"""The latent AR bandit of a log in unconstrained coordinates: parameters, priors, likelihood and its derivatives.

Coordinates: partial autocorrelations are tanh(x), so every fit is stable. With s_a the standard deviation of arm a's
rewards around their mean m_a: μ_a = m_a + s_a n, β_a = s_a b, sd_a = s_a eˡ. z has stationary variance 1.
With several units each unit has its own level, N(0, τ²). A unit's start has κ² times the stationary covariance.
The priors are weak; they bound parameters about which a short log has no information. docs/diagnose.md lists them.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log
from larl.diagnosis.regrets import MeanRegrets, mean_regrets
from larl.statespace.durbin_levinson import ar_from_partial_autocorrelations
from larl.statespace.smoother import ARParameters, innovations

# Prior mean and standard deviation of each kind of coordinate; those of x_j are 0 and 1/√j.
PRIORS = {"mu": (0.0, 1.0), "noise": (-0.3, 0.7), "beta": (0.0, 1.0), "level": (-1.5, 1.0), "start": (0.0, 1.0)}
DERIVATIVE_STEP = 1e-5
MAX_X = 4.0  # tanh(4) = 0.9993


@dataclass(frozen=True)
class Model:
    """A latent AR(order) bandit for a log. `tied`: all arms have the same β. Order 0: every β is 0."""

    log: Log
    order: int
    tied: bool = False

    @property
    def kind(self) -> str:
        """The kind of rewards."""
        return "continuous"

    @cached_property
    def centre(self) -> Floats:
        """m_a, the mean reward of each arm."""
        return np.bincount(self.log.arm, self.log.reward, self.log.arms) / np.maximum(self.log.plays, 1)

    @cached_property
    def spread(self) -> Floats:
        """s_a, the standard deviation of each arm, shrunk towards that of all arms with the weight of four plays."""
        squared = (self.log.reward - self.centre[self.log.arm]) ** 2
        squares, plays = np.bincount(self.log.arm, squared, self.log.arms), self.log.plays
        pooled = squares.sum() / max(self.log.rows - self.log.arms, 1)
        result: Floats = np.sqrt((squares + 4.0 * pooled) / (np.maximum(plays - 1, 0) + 4.0))
        return result

    @property
    def noise_coordinates(self) -> int:
        """Number of coordinates of the noise."""
        return self.log.arms

    @cached_property
    def reward_centre(self) -> Floats:
        """The mean reward of each arm."""
        return self.centre

    @cached_property
    def reward_spread(self) -> Floats:
        """The standard deviation of each arm's rewards."""
        return self.spread

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The positions of each kind of coordinate in theta."""
        arms, has_state = self.log.arms, self.order > 0
        sizes = {
            "partials": self.order,
            "mu": arms,
            "noise": self.noise_coordinates,
            "beta": (1 if self.tied else arms) if has_state else 0,
            "level": int(self.log.units > 1),
            "start": int(has_state),
        }
        ends = np.cumsum(list(sizes.values()))
        return {name: slice(int(end - size), int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def priors(self) -> dict[str, tuple[float, float]]:
        """Prior mean and standard deviation of each kind of coordinate but the partial autocorrelations."""
        return PRIORS

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Prior mean and standard deviation of every coordinate."""
        mean, sd = np.zeros(self.slices["start"].stop), np.ones(self.slices["start"].stop)
        sd[self.slices["partials"]] = 1.0 / np.sqrt(np.arange(1, self.order + 1))
        for name, (prior_mean, prior_sd) in self.priors.items():
            mean[self.slices[name]], sd[self.slices[name]] = prior_mean, prior_sd
        return mean, sd

    def parameters(self, theta: Floats) -> ARParameters:
        """Return the parameters at several coordinates, one per row."""
        count, k, arms = theta.shape[0], max(self.order, 1), self.log.arms
        part = {name: theta[:, columns] for name, columns in self.slices.items()}
        partials = np.zeros((count, k))
        partials[:, : self.order] = np.tanh(np.clip(part["partials"], -MAX_X, MAX_X))
        gammas, acf, shock = np.zeros((count, k)), np.zeros((count, k + 1)), np.empty(count)
        for row in range(count):
            shock[row] = ar_from_partial_autocorrelations(partials[row], gammas[row], acf[row])
        beta = np.zeros((count, arms))
        if self.order:
            beta = part["beta"] * (self.spread.mean() if self.tied else self.spread)
            beta = np.ascontiguousarray(np.broadcast_to(beta, (count, arms)))
        level = (np.exp(part["level"][:, 0]) * self.spread.mean()) ** 2 if self.log.units > 1 else np.zeros(count)
        start = np.exp(2.0 * part["start"][:, 0]) if self.order else np.ones(count)
        return ARParameters(
            gammas=gammas,
            acf=acf,
            shock=shock,
            mu=self.centre + self.spread * part["mu"],
            beta=beta,
            variance=self.noise_variance(part["noise"]),
            level=level,
            start=start,
        )

    def noise_variance(self, noise: Floats) -> Floats:
        """Return the variance of each arm's noise, (settings, arms), from the noise's coordinates."""
        result: Floats = (self.spread * np.exp(noise)) ** 2
        return result

    def innovations(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return every reward's prediction error and its variance, at each of several coordinates."""
        log = self.log
        error, variance = np.empty((theta.shape[0], log.rows)), np.empty((theta.shape[0], log.rows))
        innovations(log.arm, log.gap, log.reward, self.parameters(theta), error, variance)
        return error, variance

    def prediction_errors(self, theta: Floats) -> Floats:
        """Return every reward minus its prediction from earlier rewards, at one point."""
        errors: Floats = self.innovations(theta[None])[0][0]
        return errors

    def log_likelihoods(self, theta: Floats) -> Floats:
        """Return log p(rewards | actions, parameters) at each of several coordinates."""
        error, variance = self.innovations(theta)
        result: Floats = -0.5 * np.sum(math.log(2.0 * math.pi) + np.log(variance) + error**2 / variance, axis=1)
        return result

    def log_posteriors(self, theta: Floats) -> Floats:
        """Return the log-likelihood plus the log prior density at each of several coordinates."""
        mean, sd = self.prior
        prior = -0.5 * np.sum(((theta - mean) / sd) ** 2 + np.log(2.0 * math.pi * sd**2), axis=1)
        result: Floats = self.log_likelihoods(theta) + prior
        return result

    def log_likelihood(self, theta: Floats) -> float:
        """Return the log-likelihood at one point."""
        return float(self.log_likelihoods(theta[None])[0])

    def log_posterior(self, theta: Floats) -> float:
        """Return the log-posterior, up to a constant, at one point."""
        return float(self.log_posteriors(theta[None])[0])

    def gradient_and_information(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the log-posterior and the expected Fisher information, by numerical derivatives.

        With v the innovations and F their variances: Σ (½(v²/F − 1) ∂log F − v ∂v/F) and
        Σ (∂v∂vᵀ/F + ½ ∂log F ∂log Fᵀ).
        """
        error, variance = self.innovations(np.concatenate([theta[None], theta + DERIVATIVE_STEP * np.eye(theta.size)]))
        v, f = error[0], variance[0]
        dv, dlog_f = (error[1:] - v) / DERIVATIVE_STEP, np.log(variance[1:] / f) / DERIVATIVE_STEP
        mean, sd = self.prior
        gradient = dlog_f @ (0.5 * (v**2 / f - 1.0)) - dv @ (v / f) - (theta - mean) / sd**2
        # einsum, because the BLAS threads behind @ made this ten times slower on busy cores.
        information = np.einsum("it,jt->ij", dv / f, dv) + 0.5 * np.einsum("it,jt->ij", dlog_f, dlog_f)
        return gradient, information + np.diag(sd**-2.0)

    def precision(self, theta: Floats, information: Floats) -> Floats:  # noqa: ARG002
        """Return the precision of the normal approximation at a mode: the Fisher information."""
        return information

    def gaussian_form(self, theta: Floats) -> tuple[Log, Floats, Any]:
        """Return a log, its rewards and one setting of which the Kalman smoother gives the state at one point."""
        return self.log, self.log.reward, first_setting(self.parameters(theta[None]))

    def variance_shares(self, parameters: Any, known: Floats) -> tuple[float, Floats]:
        """Return the share of the rewards' variance (given the arm) that is due to the state, and the predictable ones.

        `known` is the share of the state's variance that is known in each of several forecasts.
        """
        plays = self.log.plays / self.log.rows
        from_state = float(plays @ parameters.beta**2)
        total = float(plays @ (parameters.beta**2 + parameters.variance))
        return from_state / total, from_state / total * known

    def regrets(self, parameters: Any, path: Floats) -> MeanRegrets:
        """Return the mean regrets over a path of the state."""
        return mean_regrets(self.log, parameters.mu, parameters.beta, path)


def first_setting(parameters: ARParameters) -> Any:
    """Return the first of several settings, without the leading axis."""
    return ARParameters(*(part[0] for part in parameters))
