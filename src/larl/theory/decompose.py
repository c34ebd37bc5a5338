"""The exact split of expected regret: the floor, which no policy avoids, and the cost of learning."""

import json
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel
from larl._core.states import copy_state
from larl._core.validation import InvalidValue, integer
from larl.statespace.kalman import (
    FilterState,
    current_offset,
    expected_reward,
    initial_filter_state,
    update_filter,
    update_filter_missing,
    validate_linear_world,
)
from larl.statespace.steady_state import common_measurement
from larl.theory.expected_maximum import expected_best_mean
from larl.worlds.base import LinearGaussianWorld

if TYPE_CHECKING:
    import pandas as pd

    from larl.simulation.result import Result

Floats = NDArray[np.float64]


class PlayedSteps(NamedTuple):
    """Every step of a result in one world; arrays are (policy, trial, time)."""

    policies: list[str]
    regret: Floats
    arm: NDArray[np.int64]
    reward: Floats


def played_steps(function: str, result: "Result", world: LinearGaussianWorld) -> PlayedSteps:
    """Return the steps of a result in this world; raise InvalidValue if it does not have them."""
    if not hasattr(result, "policies"):
        raise InvalidValue(function, "result", result, "a larl.Result, which compare(…) returns")
    if result.units is not None:
        raise InvalidValue(function, "result", result, "trials of single units: compare(...) without units")
    names = [name for name, each in json.loads(result.data.attrs["worlds"]).items() if each == _as_json(world)]
    if not names:
        raise InvalidValue(function, "world", world, "the world, with the same start, that the result was simulated in")
    steps = [result.regret, result.arm, result.reward]
    regret, arm, reward = (each.sel(world=names[0]).values if result.worlds else each.values for each in steps)
    return PlayedSteps(result.policies, regret, arm.astype(np.int64), reward)


def _as_json(world: LinearGaussianWorld) -> object:
    """Return the world's fields as they are after writing and reading JSON."""
    return json.loads(json.dumps(world.to_dict()))


class Decomposition(NamedTuple):
    """The regret of each policy, split into the floor and the cost of learning.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per policy, in units of the reward. `regret` and `regret se`: mean total regret over trials and its
        standard error. `floor`: Σ_t floor_t, the same for all policies and exact. `learning` and `learning se`: mean of
        Σ_t gap_t. `remainder` and `remainder se`: mean of regret − floor − Σ_t gap_t, whose expectation is 0.
    floors : array, (time,)
        floor_t, the expected regret of step t of the policy that knows all parameters.
    gaps : array, (policy, trial, time)
        gap_t = max_a r̃_t(a) − r̃_t(a_t).

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> result = larl.compare({"UCB": larl.UCB()}, world, horizon=50, trials=20)
    >>> split = larl.theory.decompose(result, world)
    >>> bool((split.gaps >= 0).all()), split.gaps.shape
    (True, (1, 20, 50))
    """

    table: "pd.DataFrame"
    floors: Floats
    gaps: Floats


def decompose(result: "Result", world: LinearGaussianWorld) -> Decomposition:
    """Split each policy's regret into the floor and the cost of learning.

    E Regret = Σ_t floor_t + E Σ_t gap_t, exactly and for every policy. gap_t = max_a r̃_t(a) − r̃_t(a_t) ≥ 0 is the loss
    at the exact filter's predictions r̃, given the actions and rewards of the policy. floor_t does not depend on the
    policy. In the long run it is `regret_floor`; earlier it depends on the world's start.

    Parameters
    ----------
    result : Result
        A result of ``compare(..., keep="all")``, which has every action and reward.
    world : LatentAR or LatentVAR
        The world of the result. Its filter must have a steady state: then what a policy knows about z does not depend
        on its actions.

    Returns
    -------
    Decomposition

    Raises
    ------
    InvalidValue
        If the result has no single steps, is of a cohort or of another world, or if arms measure z differently.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> policies = {"LARL": larl.LARL(s=1), "Kalman": larl.KalmanOracle(), "random": larl.Random()}
    >>> result = larl.compare(policies, world, horizon=200, trials=100)
    >>> larl.theory.decompose(result, world).table[["regret", "floor", "learning"]].round(1).reset_index()
       policy  regret  floor  learning
    0    LARL    78.4   57.4      21.5
    1  Kalman    57.5   57.4       0.0
    2  random   354.3   57.4     296.9
    """
    import pandas as pd

    world = validate_linear_world("decompose", "world", world)
    steps, floors = played_steps("decompose", result, world), floor_path(world, result.regret.sizes["time"])
    gaps = np.empty_like(steps.regret)
    start = initial_filter_state(world)
    for trial in np.ndindex(gaps.shape[:2]):
        _write_gaps(copy_state(start), steps.arm[trial], steps.reward[trial], gaps[trial])
    regret, learning = steps.regret.sum(axis=-1), gaps.sum(axis=-1)
    columns: dict[str, object] = {}
    for name, total in (("regret", regret), ("learning", learning), ("remainder", regret - learning - floors.sum())):
        if name == "learning":
            columns["floor"] = float(floors.sum())
        columns[name] = total.mean(axis=-1)
        columns[f"{name} se"] = total.std(axis=-1, ddof=min(1, total.shape[-1] - 1)) / math.sqrt(total.shape[-1])
    return Decomposition(pd.DataFrame(columns, index=pd.Index(steps.policies, name="policy")), floors, gaps)


@kernel
def _write_gaps(state: FilterState, arms: NDArray[np.int64], rewards: Floats, gaps: Floats) -> None:
    """Set gaps[t] to max_a r̃_t(a) − r̃_t(a_t) of a trial, with r̃ from the exact filter."""
    for t in range(gaps.size):
        arm, offset = arms[t], current_offset(state)
        played = expected_reward(state.mu, state.beta, state.mean, offset, arm)
        best = played
        for other in range(state.mu.size):
            best = max(best, expected_reward(state.mu, state.beta, state.mean, offset, other))
        gaps[t] = best - played
        update_filter(state, arm, rewards[t])


def floor_path(world: LinearGaussianWorld, horizon: int) -> Floats:
    """Return floor_t, the expected regret of step t of the policy that knows all parameters and filters exactly.

    z_t ~ N(m_t, S_t) and z̃_t ~ N(m_t, S_t − P_t) with the error variance P_t of the filter, which does not depend on
    the arms: floor_t = E max_a(μ_a + β_a z_t) − E max_a(μ_a + β_a z̃_t). From a steady start P_t = P₁₁ for all t.

    Parameters
    ----------
    world : LatentAR or LatentVAR
        A world whose filter has a steady state.
    horizon : int, >= 1
        Number of steps.

    Returns
    -------
    array, (horizon,)
        In units of the reward.

    Raises
    ------
    InvalidValue
        If arms measure z differently.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> larl.theory.floor_path(world, 4).round(3)
    array([0.972, 0.508, 0.422, 0.378])
    """
    world = validate_linear_world("floor_path", "world", world)
    horizon = integer(1)("floor_path", "horizon", horizon)
    measurement = common_measurement(world)
    if measurement is None:
        accepted = "no β of 0, β on one line, and noise='scaled' or all |β| equal: else it depends on the arms played"
        raise InvalidValue("floor_path", "world", world, accepted)
    (u, b, _), m = measurement, world.m
    known, prior = initial_filter_state(world), initial_filter_state(world)  # with the rewards before t, and without
    floors, previous = np.empty(horizon), np.full(3, np.nan)
    for t in range(horizon):
        current = slice(current_offset(known), current_offset(known) + m)
        mean, variance = float(u @ prior.mean[current]), float(u @ prior.cov[current, current] @ u)
        error = float(u @ known.cov[current, current] @ u)
        moments = np.array([mean, variance, error])
        if t >= world.k and np.allclose(moments, previous, rtol=1e-13, atol=1e-13 * math.sqrt(max(variance, 0.0))):
            floors[t:] = floors[t - 1]
            break
        best, found = (expected_best_mean(world.mu, b, mean, max(v, 0.0)) for v in (variance, variance - error))
        floors[t], previous = max(best - found, 0.0), moments
        update_filter(known, 0, 0.0)
        update_filter_missing(prior)
    return floors
