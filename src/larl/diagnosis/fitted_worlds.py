"""Worlds with the parameters of a fit, to simulate in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from larl._core.validation import InvalidValue, checked, integer, numbers
from larl.diagnosis.estimates import PosteriorDraw
from larl.diagnosis.glm import population_average, reward_variances
from larl.diagnosis.kernels import Floats
from larl.statespace.smoother import ARParameters
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_glm import LatentGLM

if TYPE_CHECKING:
    from larl.diagnosis.result import Diagnosis

MIN_DISPERSION, MAX_DISPERSION = 1e-6, 10.0  # of a LatentGLM
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True)
class FittedWorld(LatentAR):
    """A LatentAR in which each arm has its own noise: sd_a = `noises`[a]."""

    noises: Sequence[float] = checked(numbers(2), (1.0, 1.0))

    @property
    def sd(self) -> Floats:
        """Standard deviation of each arm's noise."""
        return np.array(self.noises)


def fitted_world(draw: PosteriorDraw) -> FittedWorld | LatentGLM:
    """Return the world of a draw."""
    return make_world(draw.kind, draw.parameters)


def make_world(kind: str, one: ARParameters) -> FittedWorld | LatentGLM:
    """Return the world of one setting (leading axis of length 1).

    σ_z = 1, the start is stationary, and the largest |β| is positive. Rewards have the log's units.
    A unit of a binary or count world has the mean rewards of all units.
    """
    mu, beta = one.mu[0], one.beta[0]
    if kind != "continuous":
        mu, beta = population_average(kind, mu, beta, float(one.level[0]))
    beta = beta * np.sqrt(one.shock[0])
    beta = beta * (np.sign(beta[np.abs(beta).argmax()]) or 1.0)
    process = {"gammas": one.gammas[0].tolist(), "beta": beta.tolist(), "mu": mu.tolist()}
    if kind == "binary":
        return LatentGLM(**process)
    if kind == "count":
        dispersion = float(np.clip(one.variance[0].mean(), MIN_DISPERSION, MAX_DISPERSION))
        return LatentGLM(**process, family="negative_binomial", dispersion=dispersion)
    return FittedWorld(**process, noise="common", noises=np.sqrt(one.variance[0]).tolist())


def linear_world(world: FittedWorld | LatentGLM) -> FittedWorld:
    """Return the linear Gaussian world with the same first two moments of rewards, and of rewards with the state."""
    if isinstance(world, FittedWorld):
        return world
    weights, sd = _WEIGHTS / _WEIGHTS.sum(), float(np.sqrt(world.process.stationary_var))
    means = world.means(sd * _NODES)  # (nodes, arms)
    kind = "binary" if world.family == "bernoulli" else "count"
    noise = reward_variances(kind, means, world.dispersion or 0.0)
    mu, beta = weights @ means, (weights * _NODES) @ means / sd
    residual = means - mu - sd * _NODES[:, None] * beta
    variance = weights @ (noise + residual**2)
    return FittedWorld(
        gammas=world.gammas,
        beta=beta.tolist(),
        mu=mu.tolist(),
        noise="common",
        noises=np.sqrt(np.maximum(variance, 0.0)).tolist(),
    )


def world_of(diagnosis: "Diagnosis", draw: int | None) -> FittedWorld | LatentGLM:
    """Return the world of a diagnosis; `Diagnosis.world` describes it."""
    estimates = diagnosis.estimates
    if estimates is None:
        raise InvalidValue("Diagnosis", "world", None, "a diagnosis with a fit; this log has too little data")
    if diagnosis.fitted.arms < 2:
        raise InvalidValue("Diagnosis", "world", "1 arm", "a diagnosis of a log with two or more arms")
    if draw is not None:
        return fitted_world(estimates.draws[integer(0, len(estimates.draws) - 1)("Diagnosis.world", "draw", draw)])
    best = estimates.fits[estimates.best]
    return make_world(best.model.kind, best.model.parameters(best.theta[None]))
