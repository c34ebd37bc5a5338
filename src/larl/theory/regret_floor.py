"""What there is to win in a world: the expected best mean, and the regret that even the best informed pay."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larl._core.compile import copy_fields, kernel
from larl._core.random import WORLD, stream
from larl._core.validation import InvalidValue, array, integer
from larl.statespace.kalman import belief, best_arm, condition, linear, measured, observe, place, predict, steady_state
from larl.worlds.base import LinearGaussianWorld
from larl.worlds.kernels import advance, begin

Floats = NDArray[np.float64]
POINTS = 15  # 2¹⁵ points of a Sobol sequence where the best of many arms varies in more than one direction


def best_mean(mu: ArrayLike, beta: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """E max_a (μ_a + β_aᵀz) for z ~ N(mean, variance): numbers for a scalar z; (arms, m), (m,), (m, m) for a vector.

    What all arms share adds nothing to the expectation of a maximum, so only the differences between the β_a count.
    Along one direction the maximum is the upper envelope of lines, integrated piece by piece and exact: for a scalar,
    for two arms, for all β on a line. Further directions are averaged over a Sobol sequence, always the same; in units
    of an arm's standard deviation that is off by some 10⁻⁵ in a plane and 10⁻⁴ beyond.
    """
    given = {"mu": mu, "beta": beta, "mean": mean, "variance": variance}
    height, slopes, centre, cov = (array("best_mean", name, value) for name, value in given.items())
    shapes = {"mu": slopes.shape[:1], "mean": slopes.shape[1:], "variance": 2 * slopes.shape[1:]}
    if slopes.ndim not in (1, 2):
        raise InvalidValue("best_mean", "beta", beta, "(arms,) or (arms, m) numbers")
    for name, value in (("mu", height), ("mean", centre), ("variance", cov)):
        if value.shape != shapes[name]:
            accepted = f"an array of shape {shapes[name]}, for beta of shape {slopes.shape}"
            raise InvalidValue("best_mean", name, given[name], accepted)
    if slopes.ndim == 1:
        if cov < 0.0:
            raise InvalidValue("best_mean", "variance", variance, "a number ≥ 0")
        height = height + slopes * centre
        slopes = np.sqrt(cov) * slopes[:, None]
    else:
        size, vectors = np.linalg.eigh(cov)
        height = height + slopes @ centre
        slopes = slopes @ vectors * np.sqrt(np.maximum(size, 0.0))
        slopes = slopes - slopes.mean(axis=0)
        _, size, turned = np.linalg.svd(slopes, full_matrices=False)
        slopes = slopes @ turned[: max(int(np.sum(size > 1e-10 * size[0])), 1)].T  # the widest direction first
    if slopes.shape[1] == 1:
        return float(_envelope(height, slopes[:, 0]))
    return float(_envelope(height + _normals(slopes.shape[1] - 1) @ slopes[:, 1:].T, slopes[:, 0]).mean())


def _envelope(height: Floats, slope: Floats) -> Floats:
    """E max_a (height_a + slope_a n), n ~ N(0, 1), for each row of heights.

    Line a leads between l, where it overtakes the last of the flatter lines, and u, where the first of the steeper ones
    overtakes it, and adds height·(Φ(u) − Φ(l)) + slope·(φ(l) − φ(u)). Of equal lines the first counts.
    """
    from scipy.special import ndtr

    total = np.zeros(height.shape[:-1])
    with np.errstate(over="ignore"):  # lines that are all but parallel may cross at infinity
        for a in range(slope.size):
            mine, flatter, steeper = height[..., a], slope < slope[a], slope > slope[a]
            away = height - mine[..., None]
            left = (away[..., flatter] / (slope[a] - slope[flatter])).max(axis=-1, initial=-math.inf)
            right = (-away[..., steeper] / (slope[steeper] - slope[a])).min(axis=-1, initial=math.inf)
            first, parallel = np.arange(slope.size) < a, slope == slope[a]
            hidden = (away[..., parallel] > 0.0).any(axis=-1) | (away[..., parallel & first] == 0.0).any(axis=-1)
            part = mine * (ndtr(right) - ndtr(left)) + slope[a] * (_density(left) - _density(right))
            total += np.where((left < right) & ~hidden, part, 0.0)
    return total


def _density(x: Floats) -> Floats:
    result: Floats = np.exp(-0.5 * np.square(x)) / math.sqrt(2.0 * math.pi)
    return result


@lru_cache(maxsize=4)
def _normals(dimensions: int) -> Floats:
    """Points that are spread as a standard normal vector: a Sobol sequence, each point in the middle of its cell."""
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, scramble=False).random_base2(POINTS)
    return np.asarray(ndtri(points + 0.5**POINTS / 2.0))


def _long_run_best(world: LinearGaussianWorld, cov: Floats) -> float:
    """E max_a (μ_a + β_aᵀz) where z has its long-run mean and this covariance."""
    return best_mean(world.mu, world.loadings, world.long_run_mean, cov)


def regret_floor(world: LinearGaussianWorld) -> float:
    """Expected regret a step, in the long run, of the policy that knows every parameter and filters exactly.

    Where every arm measures the same y = uᵀz equally well, ỹ ~ N(uᵀm, uᵀ(S − P)u) is all it knows of y, so it loses
    E max_a(μ_a + b_a y) − E max_a(μ_a + b_a ỹ). Elsewhere what it knows depends on the arms it plays, and the floor is
    simulated: `greedy_regret(world).mean`. It is then the floor of whoever does not pay for information; one who does
    may go below, but not below `floor_bound`.
    """
    found = measured(linear("regret_floor", "world", world))
    if found is None:
        return greedy_regret(world).mean
    u, b, _ = found
    m, steady = world.m, steady_state(world)
    mean, whole_ = float(u @ world.long_run_mean), float(u @ world.stationary_cov[:m, :m] @ u)
    left = max(whole_ - float(steady.c @ steady.cov @ steady.c), 0.0)
    return max(best_mean(world.mu, b, mean, whole_) - best_mean(world.mu, b, mean, left), 0.0)


class Estimate(NamedTuple):
    """A simulated number and its standard error."""

    mean: float
    error: float


@kernel
def _play_greedily(latent: Any, start: Any, seed: int, skip: int, steps: int, found: Floats) -> None:
    """Into found[trial], the mean regret of steps skip … skip + steps − 1, the arm best at the filter's mean played."""
    for trial in range(found.size):
        world, now, total = copy_fields(latent), copy_fields(start), 0.0
        begin(world, seed, trial)
        key = stream(seed, trial, WORLD)
        for t in range(skip + steps):
            noise = advance(world, key, t)
            arm = best_arm(now.mu, now.beta, now.mean, place(now))
            best = world.means[arm]
            for other in range(world.means.size):
                best = max(best, world.means[other])
            if t >= skip:
                total += best - world.means[arm]
            observe(now, arm, world.means[arm] + world.sd[arm] * noise)
        found[trial] = total / steps


def greedy_regret(world: LinearGaussianWorld, trials: int = 100, steps: int = 4000, seed: int = 0) -> Estimate:
    """Regret a step, in the long run, of the arm best at the exact filter's mean (`KalmanOracle`), simulated.

    Trials begin in the long run's law, and steps count once that start is forgotten to a thousandth.
    """
    trials, steps = integer(2)("greedy_regret", "trials", trials), integer(1)("greedy_regret", "steps", steps)
    seed = integer(0, 2**63 - 1)("greedy_regret", "seed", seed)
    return _greedy_regret(linear("greedy_regret", "world", world), trials, steps, seed)


@lru_cache(maxsize=256)
def _greedy_regret(world: LinearGaussianWorld, trials: int, steps: int, seed: int) -> Estimate:
    begun: Any = replace(world, start="stationary")  # type: ignore[type-var]
    skip = world.k + math.ceil(math.log(1e-3) / math.log(min(max(world.spectral_radius, 1e-3), 0.999)))
    found = np.empty(trials)
    _play_greedily(begun.latent(), belief(begun), seed, skip, steps, found)
    return Estimate(float(found.mean()), float(found.std(ddof=1) / math.sqrt(trials)))


def floor_bound(world: LinearGaussianWorld) -> float:
    """A regret a step, in the long run, that no policy goes below: what it were if every step showed all arms' rewards.

    With P the error of that filter, E max_a(μ_a + β_aᵀz) for z ~ N(m, S) less the same for N(m, S − P).
    """
    m, cov = linear("floor_bound", "world", world).m, _error_of_all_arms(world)
    everything = world.stationary_cov[:m, :m]
    return max(_long_run_best(world, everything) - _long_run_best(world, everything - cov[:m, :m]), 0.0)


def _error_of_all_arms(world: LinearGaussianWorld) -> Floats:
    """The steady covariance of z⃗_t given every arm's reward at every step before t."""
    system, nothing = world.system, np.zeros(world.m * world.k)
    cov, before = system.noise, np.full_like(system.noise, np.inf)
    for _ in range(100_000):
        if np.allclose(before, cov, rtol=1e-12, atol=0.0):
            break
        before = cov
        for c, sd in zip(system.c, system.sd, strict=True):
            _, cov = condition(nothing, cov, c, sd**2, 0.0)
        _, cov = predict(nothing, cov, system.gamma, system.drift, system.noise)
    return cov


def random_cost(world: LinearGaussianWorld) -> float:
    """Expected regret a step, in the long run, of choosing an arm at random."""
    world = linear("random_cost", "world", world)
    average = float(np.mean(world.system.mu + world.loadings @ world.long_run_mean))
    return _long_run_best(world, world.stationary_cov[: world.m, : world.m]) - average


def predictability(world: LinearGaussianWorld) -> float:
    """1 − floor/random: the share of random's regret that the best informed policy avoids (0 if there is none)."""
    cost = random_cost(linear("predictability", "world", world))
    return 1.0 - regret_floor(world) / cost if cost > 0.0 else 0.0
