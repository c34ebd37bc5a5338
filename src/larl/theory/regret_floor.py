"""The long-run regret per step of the best-informed policy, a lower bound for all policies, and random choices."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel
from larl._core.random import WORLD, stream
from larl._core.states import copy_state
from larl._core.validation import InvalidValue, integer
from larl.statespace.kalman import (
    best_arm,
    condition,
    current_offset,
    initial_filter_state,
    predict,
    update_filter,
)
from larl.statespace.steady_state import common_measurement, steady_state
from larl.theory._burn_in import burn_in_steps
from larl.theory.expected_maximum import expected_best_mean
from larl.theory.glm_floor import random_glm_regret, simulated_glm_regrets
from larl.theory.markov_floor import random_markov_regret, simulated_regrets
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.kernels import advance, begin
from larl.worlds.latent_glm import LatentGLM
from larl.worlds.latent_markov import LatentMarkov

Floats = NDArray[np.float64]
FilterableWorld = LinearGaussianWorld | LatentMarkov | LatentGLM
TRIALS, STEPS = 100, 4000  # of a simulated floor
GLM_STEPS = 500  # of one in a LatentGLM: a particle filter is slow


def _validate_world(function: str, world: Any) -> None:
    """Raise InvalidValue if there is no filter for the world."""
    if not isinstance(world, FilterableWorld):
        accepted = "a larl.LatentAR, a larl.LatentVAR, a larl.worlds.LatentMarkov or a larl.worlds.LatentGLM"
        raise InvalidValue(function, "world", world, accepted)


def _stationary_best_mean(world: LinearGaussianWorld, cov: Floats) -> float:
    """Return E max_a (μ_a + β_aᵀz) where z has the stationary mean and this covariance."""
    return expected_best_mean(world.mu, world.loadings, world.long_run_mean, cov)


def regret_floor(world: FilterableWorld) -> float:
    """Return the long-run expected regret per step of the policy that knows all parameters and filters exactly.

    If every arm measures the same y = uᵀz equally well, the filter's prediction is ỹ ~ N(uᵀm, uᵀ(S − P)u), and the
    regret is E max_a(μ_a + b_a y) − E max_a(μ_a + b_a ỹ). Otherwise, and in a LatentMarkov or LatentGLM, the
    information depends on the arms played, and the floor is simulated: ``greedy_regret(world).mean``. A policy that
    explores to gain information may then have less regret, but not less than `regret_lower_bound`.

    Parameters
    ----------
    world : LatentAR, LatentVAR, LatentMarkov or LatentGLM
        The world.

    Returns
    -------
    float
        Regret per step, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> round(larl.theory.regret_floor(larl.worlds.paper(1)), 3)
    0.279
    """
    _validate_world("regret_floor", world)
    measurement = common_measurement(world) if isinstance(world, LinearGaussianWorld) else None
    if measurement is None or not isinstance(world, LinearGaussianWorld):
        return greedy_regret(world).mean
    u, b, _ = measurement
    m, steady = world.m, steady_state(world)
    mean, variance = float(u @ world.long_run_mean), float(u @ world.stationary_cov[:m, :m] @ u)
    predicted = max(variance - float(steady.c @ steady.cov @ steady.c), 0.0)
    best = expected_best_mean(world.mu, b, mean, variance)
    return max(best - expected_best_mean(world.mu, b, mean, predicted), 0.0)


class SimulatedMean(NamedTuple):
    """A mean over simulated trials and its standard error."""

    mean: float
    standard_error: float


@kernel
def _simulate_greedy(world: Any, state: Any, seed: int, trial: int, burn_in: int, steps: int) -> float:
    """Return a trial's mean regret per step, after `burn_in` steps, of the arm best at the filter's mean."""
    total = 0.0
    begin(world, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(burn_in + steps):
        noise = advance(world, key, t)
        arm = best_arm(state.mu, state.beta, state.mean, current_offset(state))
        best = world.means[arm]
        for other in range(world.means.size):
            best = max(best, world.means[other])
        if t >= burn_in:
            total += best - world.means[arm]
        update_filter(state, arm, world.means[arm] + world.sd[arm] * noise)
    return total / steps


def greedy_regret(
    world: FilterableWorld, trials: int = TRIALS, steps: int | None = None, seed: int = 0
) -> SimulatedMean:
    """Simulate the long-run regret per step of the policy that knows the world's parameters and plays greedily.

    It is `KalmanOracle`, in a LatentMarkov `MarkovOracle` and in a LatentGLM `FilterOracle`: the arm with the largest
    expected mean under the exact filter, or under a particle filter in a LatentGLM.

    Trials have a stationary start. Steps count after a burn-in that reduces the influence of the start to 0.1%.

    Parameters
    ----------
    world : LatentAR, LatentVAR, LatentMarkov or LatentGLM
        The world.
    trials : int, >= 2, default 100
        Number of simulated trials.
    steps : int, >= 1, optional
        Number of counted steps per trial; by default 4000, in a LatentGLM 500.
    seed : int, >= 0, default 0
        The same seed gives the same result.

    Returns
    -------
    SimulatedMean
        ``mean`` and ``standard_error``, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> round(larl.theory.greedy_regret(larl.worlds.paper(1), trials=20, steps=500).mean, 2)
    0.26
    """
    _validate_world("greedy_regret", world)
    steps = (GLM_STEPS if isinstance(world, LatentGLM) else STEPS) if steps is None else steps
    trials, steps = integer(2)("greedy_regret", "trials", trials), integer(1)("greedy_regret", "steps", steps)
    seed = integer(0, 2**63 - 1)("greedy_regret", "seed", seed)
    if isinstance(world, LatentGLM):
        return _simulated_mean(np.array(simulated_glm_regrets(world, trials, steps, seed, is_full=False)))
    if isinstance(world, LatentMarkov):
        return _simulated_mean(np.array(simulated_regrets(world, trials, steps, seed, is_full=False)))
    return _greedy_regret(world, trials, steps, seed)


def _simulated_mean(regret: Floats) -> SimulatedMean:
    """Return the mean over trials and its standard error."""
    return SimulatedMean(float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(regret.size)))


@lru_cache(maxsize=256)
def _greedy_regret(world: LinearGaussianWorld, trials: int, steps: int, seed: int) -> SimulatedMean:
    """Compute `greedy_regret` once per set of arguments."""
    stationary: Any = replace(world, start="stationary")  # type: ignore[type-var]
    burn_in, start = burn_in_steps(world.k, world.spectral_radius), initial_filter_state(stationary)
    regret = [
        _simulate_greedy(stationary.latent(), copy_state(start), seed, trial, burn_in, steps) for trial in range(trials)
    ]
    return _simulated_mean(np.array(regret))


def regret_lower_bound(world: FilterableWorld) -> float:
    """Return a long-run regret per step that no policy can go below.

    It is the regret with full information: every step shows the rewards of all arms. With P the error covariance of
    that filter, it is E max_a(μ_a + β_aᵀz) for z ~ N(m, S) minus the same for z ~ N(m, S − P). In a LatentMarkov or
    LatentGLM the filter is simulated (100 trials of 4,000 or 500 steps).

    Parameters
    ----------
    world : LatentAR, LatentVAR, LatentMarkov or LatentGLM
        The world.

    Returns
    -------
    float
        Regret per step, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.paper(1)
    >>> larl.theory.regret_lower_bound(world) < larl.theory.regret_floor(world)
    True
    """
    _validate_world("regret_lower_bound", world)
    if isinstance(world, LatentMarkov):
        return float(np.mean(simulated_regrets(world, TRIALS, STEPS, 0, is_full=True)))
    if isinstance(world, LatentGLM):
        return float(np.mean(simulated_glm_regrets(world, TRIALS, GLM_STEPS, 0, is_full=True)))
    m, cov = world.m, _full_information_cov(world)
    stationary = world.stationary_cov[:m, :m]
    difference = _stationary_best_mean(world, stationary) - _stationary_best_mean(world, stationary - cov[:m, :m])
    return max(difference, 0.0)


def _full_information_cov(world: LinearGaussianWorld) -> Floats:
    """Return the steady covariance of z⃗_t given every arm's reward at every step before t."""
    system, zeros = world.system, np.zeros(world.m * world.k)
    cov, previous = system.noise, np.full_like(system.noise, np.inf)
    for _ in range(100_000):
        if np.allclose(previous, cov, rtol=1e-12, atol=0.0):
            break
        previous = cov
        for c, sd in zip(system.c, system.sd, strict=True):
            _, cov = condition(zeros, cov, c, sd**2, 0.0)
        _, cov = predict(zeros, cov, system.gamma, system.drift, system.noise)
    return cov


def random_regret(world: FilterableWorld) -> float:
    """Return the long-run expected regret per step of choosing arms uniformly at random.

    Parameters
    ----------
    world : LatentAR, LatentVAR, LatentMarkov or LatentGLM
        The world.

    Returns
    -------
    float
        Regret per step, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> round(larl.theory.random_regret(larl.worlds.paper(1)), 3)
    1.83
    """
    _validate_world("random_regret", world)
    if isinstance(world, LatentMarkov):
        return random_markov_regret(world)
    if isinstance(world, LatentGLM):
        return random_glm_regret(world)
    average = float(np.mean(world.system.mu + world.loadings @ world.long_run_mean))
    return _stationary_best_mean(world, world.stationary_cov[: world.m, : world.m]) - average


def predictability(world: FilterableWorld) -> float:
    """Return 1 − ``regret_floor``/``random_regret``: the share of random regret that the best-informed policy avoids.

    Parameters
    ----------
    world : LatentAR, LatentVAR, LatentMarkov or LatentGLM
        The world.

    Returns
    -------
    float
        Between 0 and 1; 0 if random choices have no regret.

    Examples
    --------
    >>> import larl
    >>> round(larl.theory.predictability(larl.worlds.paper(1)), 2)
    0.85
    """
    _validate_world("predictability", world)
    regret = random_regret(world)
    return 1.0 - regret_floor(world) / regret if regret > 0.0 else 0.0
