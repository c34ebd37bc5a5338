"""Worlds inside kernels: the generic functions of every world, and their implementation for a latent AR or VAR process.

A world's latent state is a NamedTuple. `implement(begin, ItsState, its_begin)` binds a world's own version of a generic
function to the class of its state.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from larl._core.compile import assign, generic, implement, inline, is_larl, kernel
from larl._core.entries import entry_address
from larl._core.random import START, WORLD, normal_pair, random_bits, stream
from larl._core.states import Memory, caller, floats_at, kind_of, loader, words_at

Floats = NDArray[np.float64]


class Latent(NamedTuple):
    """A latent AR or VAR world inside a kernel: its parameters, the last k states (latest first), the current means.

    A state has m components. Where an array holds several steps, the components of one step are adjacent.
    """

    gammas: Floats  # (m, mk) coefficients of z_t on `recent`
    gamma0: Floats  # (m,)
    factor: Floats  # (m, m): the covariance of the shocks is factor @ factor.T
    mu: Floats
    beta: Floats  # (arms, m)
    sd: Floats
    start_mean: Floats  # (mk,) of z_0 … z_{k−1}
    start_factor: Floats  # (mk, mk): the start's covariance is start_factor @ start_factor.T
    first: Floats  # (mk,) z_0 … z_{k−1} of this trial
    recent: Floats  # (mk,)
    shock: Floats  # (m,) scratch
    next: Floats  # (m,) scratch
    means: Floats


@generic
def begin(latent: Any, seed: int, trial: int) -> None:
    """Draw the start of a trial."""
    raise TypeError("latent must be the latent state of a world")


@generic
def advance(latent: Any, key: np.uint64, t: int) -> float:
    """Move to step t, set `latent.means` and return this step's reward noise, of variance 1.

    All arms share one draw. Only the played arm's noise is observed, so the distribution of a trial is the same as with
    one draw per arm, and all policies of a comparison get the same random numbers.
    """
    raise TypeError("latent must be the latent state of a world")


@generic
def apply_action(latent: Any, arm: int) -> None:
    """Apply the action's effect on the latent state. By default there is none."""


@generic
def draw_reward(latent: Any, arm: int, noise: float) -> float:
    """Return the reward of an arm at this step, given the step's noise; nan if the reward is missing.

    By default it is the arm's mean plus its standard deviation times the noise.
    """
    return latent.means[arm] + latent.sd[arm] * noise


@generic
def step_regret(latent: Any, arm: int) -> float:
    """Return the regret of an arm at this step: the largest mean minus that of the arm."""
    best = latent.means[0]
    for other in range(1, latent.means.size):
        best = max(best, latent.means[other])
    return best - latent.means[arm]


def begin_latent(latent: Latent, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of this trial."""
    key, k = stream(seed, trial, START), latent.first.size
    assign(latent.first, latent.start_mean)
    for j in range(k):
        draw, _ = normal_pair(key, j)
        for i in range(k):
            latent.first[i] += latent.start_factor[i, j] * draw


@inline
def draw_shocks(shock: Floats, first: float, key: np.uint64, t: int) -> None:
    """Set the standard normal shocks of step t. `first` was drawn together with the reward noise."""
    shock[0] = first
    if shock.size > 1:
        shock_key = random_bits(~key, t)
        for i in range(1, shock.size, 2):
            left, right = normal_pair(shock_key, i // 2)
            shock[i] = left
            if i + 1 < shock.size:
                shock[i + 1] = right


@inline
def set_means(latent: Latent) -> None:
    """Set the means at the current z: μ_a + β_aᵀz."""
    for arm in range(latent.mu.size):
        mean = latent.mu[arm]
        for i in range(latent.next.size):
            mean += latent.beta[arm, i] * latent.recent[i]
        latent.means[arm] = mean


def advance_latent(latent: Latent, key: np.uint64, t: int) -> float:
    """Move z and the means to step t and return standard normal reward noise."""
    first, noise = normal_pair(key, t)
    size, m = latent.recent.size, latent.next.size
    if t * m < size:
        for i in range(m):
            latent.next[i] = latent.first[t * m + i]
    else:
        draw_shocks(latent.shock, first, key, t)
        for i in range(m):
            z = latent.gamma0[i]
            for j in range(m):
                z += latent.factor[i, j] * latent.shock[j]
            for j in range(size):
                z += latent.gammas[i, j] * latent.recent[j]
            latent.next[i] = z
    for j in range(size - 1, m - 1, -1):
        latent.recent[j] = latent.recent[j - m]
    for i in range(m):
        latent.recent[i] = latent.next[i]
    set_means(latent)
    return noise


implement(begin, Latent, begin_latent)
implement(advance, Latent, advance_latent)


ADVANCE, PLAY, BEGIN, REWARD, REGRET, APPLY = 1, 2, 4, 8, 16, 32  # operations; PLAY + ADVANCE does one after the other
_int, _float = types.int64, types.float64
# entry(operation, words, key, number, step, out): `number` is an arm or a trial; `out` the address of two numbers, the
# regret and the reward noise of the step
SIGNATURE = _float(_int, _int, types.uint64, _int, _int, _int)
call = caller(_float, *SIGNATURE.args)
_addresses: dict[Any, int] = {}  # by kind of the latent state


def world_entry(load: Callable[[int], Any]) -> Callable[..., float]:
    """Return the entry for the latent states that `load` returns (_core/states.py)."""

    def entry(operation: int, words: int, key: np.uint64, number: int, step: int, out: int) -> float:
        values, reward = floats_at(out, 2), 0.0
        if operation & PLAY:
            latent = load(words)
            values[0] = step_regret(latent, number)
            reward = draw_reward(latent, number, values[1])
            apply_action(latent, number)
        if operation & ADVANCE:
            values[1] = advance(load(words), key, step)
        elif operation == BEGIN:
            begin(load(words), np.int64(key), number)  # type: ignore[arg-type]
        elif operation == REWARD:
            reward = draw_reward(load(words), number, values[1])
        elif operation == REGRET:
            values[0] = step_regret(load(words), number)
        elif operation == APPLY:
            apply_action(load(words), number)
        return reward

    return entry


class WorldHandle(NamedTuple):
    """A latent state behind an address, in compiled functions."""

    entry: int
    words: int
    arms: int
    means: int  # index of the address of the means in the words
    context: int  # the same of the context; −1 without one

    @classmethod
    def of(cls, memory: Memory, unit: int = 0) -> "WorldHandle":
        """Return the handle of a unit. It is valid as long as the memory exists."""
        latent, word = memory.state(unit), {each.path: each.word for each in memory.leaves}
        kind = kind_of(latent)
        name = type(latent).__name__
        for field in ("means", "context"):
            array = getattr(latent, field, None)
            if array is not None and (array.dtype != np.float64 or array.ndim != 1):
                found = f"an array of {array.dtype} with {array.ndim} dimensions"
                raise TypeError(f"{name}.{field} is {found}; accepted: float64 with one dimension")
        if kind not in _addresses or not is_larl(type(latent)):
            _addresses[kind] = entry_address(name, world_entry(loader(kind)), SIGNATURE, kind)
        context = word.get("context", -1)
        return cls(_addresses[kind], memory.address(unit), latent.means.size, word["means"], context)


@inline
def begin_trial(world: WorldHandle, seed: int, trial: int, out: Floats) -> None:
    """Draw the start of a trial."""
    call(world.entry, (BEGIN, world.words, np.uint64(seed), trial, 0, out.ctypes.data))


@inline
def advance_world(world: WorldHandle, key: np.uint64, t: int, out: Floats) -> None:
    """Move to step t and write its reward noise to out[1]."""
    call(world.entry, (ADVANCE, world.words, key, 0, t, out.ctypes.data))


@inline
def play(world: WorldHandle, arm: int, key: np.uint64, following: int, out: Floats) -> float:
    """Play an arm: write its regret to out[0], apply the action and return the reward, for the noise in out[1].

    Then move to step `following` and write its noise to out[1], if it is not negative.
    """
    operation = PLAY + ADVANCE if following >= 0 else PLAY
    return call(world.entry, (operation, world.words, key, arm, following, out.ctypes.data))


@inline
def true_means(world: WorldHandle) -> Floats:
    """Return the means of this step."""
    return floats_at(words_at(world.words, world.means + 1)[world.means], world.arms)


@inline
def world_context(world: WorldHandle) -> Floats:
    """Return the context of this step, of a world that has one."""
    words = words_at(world.words, world.context + 2)
    return floats_at(words[world.context], words[world.context + 1])


@kernel
def operate(world: WorldHandle, operation: int, key: np.uint64, number: int, step: int, out: Floats) -> float:
    """One operation of a world, for Python."""
    return call(world.entry, (operation, world.words, key, number, step, out.ctypes.data))


@kernel
def trace_path(latent: Latent, seed: int, trial: int, path: Floats) -> None:
    """Write z_0, z_1, … of one trial into the rows of `path`."""
    begin(latent, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(path.shape[0]):
        advance(latent, key, t)
        for i in range(path.shape[1]):
            path[t, i] = latent.recent[i]
