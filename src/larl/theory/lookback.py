"""The expected regret of LARL as a function of s, and the best s. docs/theory.md derives the formula.

LARL(s) pays for three things: its first s random steps, the part of z_t that s past rewards do not predict, and the
estimation error of a regression on s|A| rewards and s(|A| − 1) indicators. The last one decreases with the number of
steps, and the second one with s.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import InvalidValue, integer
from larl.theory.expected_maximum import expected_best_mean
from larl.theory.reduction import validate_scalar_world
from larl.worlds.latent_ar import LatentAR

Floats = NDArray[np.float64]
MAX_CONTEXT = 400  # s·arms: larger contexts are neither practical nor needed
TIMES_PER_OCTAVE = 4  # at which the regret per step is computed
STATE_GRID = np.linspace(-6.0, 6.0, 121)  # of standard normal variables: the prediction of z …
ERROR_GRID = np.linspace(-5.0, 5.0, 31)  # … and the estimation error of an arm
SMALL = 1e-9


def predicted_regret(world: LatentAR, s: int, horizon: int) -> float:
    """Return the approximate expected regret of LARL(s) over a horizon, from a stationary start.

    For two arms with β = ±1 and equal μ it is

        √(2S/π) · [s + Σ_{t=1}^{T−s} (1 − ρ_s / √(1 + R_s²(3s + 1)/(t V_s)))],

    where S is the stationary variance of z, V_s = ρ_s²S the variance of the best linear prediction of z_t from s past
    rewards, and R_s² = S − V_s + σ_r². Other numbers of arms, unequal μ and β and both kinds of noise are treated in
    the same way, with the number of plays of each arm that the formula itself expects.

    Parameters
    ----------
    world : LatentAR
        The world. Its start is not used.
    s : int, >= 0
        Number of past steps in the context.
    horizon : int, >= 1
        Number of steps of a trial.

    Returns
    -------
    float
        Regret against the best arm at every step, in units of the reward.

    Raises
    ------
    InvalidValue
        If `world` is not a LatentAR, or s · arms is above 400.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))
    >>> [round(larl.theory.predicted_regret(world, s, horizon=200)) for s in (0, 1, 2, 5)]
    [366, 75, 74, 90]
    """
    world = validate_scalar_world("predicted_regret", world)
    s, horizon = integer(0)("predicted_regret", "s", s), integer(1)("predicted_regret", "horizon", horizon)
    if s * world.arms > MAX_CONTEXT:
        accepted = f"at most {MAX_CONTEXT // world.arms} for {world.arms} arms"
        raise InvalidValue("predicted_regret", "s", s, accepted)
    return _predicted_regret(world, s, horizon)


def best_lookback(world: LatentAR, horizon: int) -> int:
    """Return the s with the smallest `predicted_regret`.

    Parameters
    ----------
    world : LatentAR
        The world. Its start is not used.
    horizon : int, >= 1
        Number of steps of a trial.

    Returns
    -------
    int
        The smallest minimiser; 0 if past rewards are not worth their estimation.

    Examples
    --------
    >>> import larl
    >>> world = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(0, 0), sigma_r=4)
    >>> [larl.theory.best_lookback(world, horizon) for horizon in (50, 200, 1000, 10_000)]
    [2, 3, 4, 7]
    """
    world = validate_scalar_world("best_lookback", world)
    horizon = integer(1)("best_lookback", "horizon", horizon)
    best, least, s, rising = 0, math.inf, 0, 0
    while s * world.arms <= MAX_CONTEXT and s <= horizon and rising < 2 * world.k + 8:
        regret = _predicted_regret(world, s, horizon)
        best, least, rising = (s, regret, 0) if regret < least else (best, least, rising + 1)
        s += 1
    return best


@lru_cache(maxsize=4096)
def _predicted_regret(world: LatentAR, s: int, horizon: int) -> float:
    """Add up the first s random steps and the regret per step, interpolated between times."""
    heights = np.array(world.mu) + np.array(world.beta) * world.stationary_mean
    best = expected_best_mean(heights, world.beta, 0.0, world.stationary_var)
    first = min(s, horizon)
    total, time, regret = first * (best - float(heights.mean())), 0, 0.0
    shares, plays = np.full(world.arms, 1.0 / world.arms), np.zeros(world.arms)  # of each arm, in expectation
    variance = _prediction_variance(world, s, shares)
    for next_time in _times(horizon - first):
        plays = plays + (next_time - time) * shares
        if not _measure_equally(world):
            variance = _prediction_variance(world, s, plays / plays.sum())
        reward, shares = _expected_choice(world, s, heights, variance, plays)
        total += _interpolated_sum(time, regret, next_time, best - reward)
        time, regret = next_time, best - reward
    return float(total)


def _interpolated_sum(start: int, first: float, end: int, last: float) -> float:
    """Return the sum of a + b/t over t = start + 1 … end, where a + b/t is `first` at `start` and `last` at `end`."""
    from scipy.special import digamma

    if end - start == 1:
        return last
    b = (first - last) / (1.0 / start - 1.0 / end)
    return (end - start) * (last - b / end) + b * float(digamma(end + 1) - digamma(start + 1))


def _measure_equally(world: LatentAR) -> bool:
    """Return whether z + noise, as each arm measures it, has the same variance for every arm."""
    beta, sd = np.abs(world.beta), world.sd
    return bool(beta.min() > 0.0 and np.allclose(beta * sd[0], sd * beta[0], rtol=1e-12, atol=0.0))


def _times(steps: int) -> list[int]:
    """Return times from 1 to `steps`, equally spaced on a logarithmic scale."""
    count = TIMES_PER_OCTAVE * max(math.ceil(math.log2(max(steps, 1))), 1) + 1
    return sorted({round(time) for time in np.geomspace(1.0, steps, count)}) if steps else []


def _prediction_variance(world: LatentAR, s: int, shares: Floats) -> float:
    """Return V_s, the variance of the best prediction of z_t that is linear in the context Φ_t(s).

    The context has the reward of each lag at the position of its arm, b at lag j. Arms are taken as independent of z,
    with probabilities `shares`. If every arm measures z equally well, V_s does not depend on them.
    """
    cov = _autocovariances(world, s)
    lags = np.arange(s)
    between = np.kron(cov[np.abs(lags[:, None] - lags)], np.outer(shares * world.beta, shares * world.beta))
    same_lag = np.diag(shares * (np.square(world.beta) * cov[0] + world.sd**2))
    blocks = np.kron(np.eye(s), np.ones((world.arms, world.arms))) > 0.0
    between[blocks] = np.kron(np.eye(s), same_lag)[blocks]
    target = np.kron(cov[1:], shares * world.beta)
    return float(target @ np.linalg.lstsq(between, target, rcond=None)[0]) if s else 0.0


def _autocovariances(world: LatentAR, s: int) -> Floats:
    """Return Cov(z_t, z_{t−j}) of the stationary process for j = 0 … s."""
    cov = list(world.stationary_cov[0])
    while len(cov) <= s:
        cov.append(float(np.dot(world.gammas, cov[: -world.k - 1 : -1])))
    return np.array(cov[: s + 1])


def _expected_choice(world: LatentAR, s: int, heights: Floats, variance: float, plays: Floats) -> tuple[float, Floats]:
    """Return the expected reward of a step and the probability of each arm.

    An arm's predicted reward is that of the best linear prediction plus an error with variance R_a² d/n_a, d the rank
    of the context and n_a the number of plays. Without past rewards (s = 0) the error of a mean of n_a correlated
    rewards depends on the long-run variance of z.
    """
    beta, rank = np.array(world.beta), s * (2 * world.arms - 1) + 1
    remaining = world.stationary_var - variance if s else (world.sigma_z / (1.0 - sum(world.gammas))) ** 2
    error = np.sqrt((np.square(beta) * remaining + world.sd**2) * rank / plays)
    error = np.maximum(error, SMALL * max(error.max(), np.ptp(heights), SMALL))  # an arm may pay the same at every step
    weight = np.exp(-0.5 * np.square(STATE_GRID))
    means = heights + math.sqrt(variance) * STATE_GRID[:, None] * beta  # (state, arm)
    chosen = np.stack([_choice_probability(means, error, arm) for arm in range(world.arms)], axis=1)
    chosen *= (weight / weight.sum() / chosen.sum(axis=1))[:, None]
    return float(np.sum(chosen * means)), chosen.sum(axis=0)


def _choice_probability(means: Floats, error: Floats, arm: int) -> Floats:
    """Return the probability that an arm has the largest of independent normal predictions, for each row of means."""
    from scipy.special import ndtr

    others = [other for other in range(error.size) if other != arm]
    if len(others) == 1:
        return np.asarray(ndtr((means[:, arm] - means[:, others[0]]) / math.hypot(*error)))
    weight = np.exp(-0.5 * np.square(ERROR_GRID))
    own = means[:, arm, None] + error[arm] * ERROR_GRID
    below = [ndtr((own - means[:, other, None]) / error[other]) for other in others]
    return np.asarray(np.prod(below, axis=0) @ (weight / weight.sum()))
