"""Worlds from outside the package: bind the latent state of a world to its kernels, and their random draws."""

from collections.abc import Callable
from typing import Any

import numpy as np

from larl._core.compile import implement, inline
from larl._core.random import START, Bits, empty_bits, random_bits, seed_bits, stream
from larl.worlds.kernels import advance, apply_action, begin, draw_reward


def register_latent(
    state: type,
    begin_: Callable[[Any, int, int], None],
    advance_: Callable[[Any, Any, int], float],
    apply_action_: Callable[[Any, int], None] | None = None,
    draw_reward_: Callable[[Any, int, float], float] | None = None,
) -> None:
    """Bind the class of a world's latent state to the functions that move it. numba compiles them.

    Parameters
    ----------
    state : type
        NamedTuple class of what `World.latent` returns, with at least the array ``means``, one number for each arm, and
        another ``sd`` unless `draw_reward_` is given.
    begin_ : callable
        ``begin(latent, seed, trial) -> None`` draws the start of a trial, with ``start_bits(seed, trial)``.
    advance_ : callable
        ``advance(latent, key, t) -> float`` moves to step t = 0, 1, …, with ``step_bits(key, t)``, sets
        ``latent.means`` and returns the noise of this step with variance 1.
    apply_action_ : callable, optional
        ``apply_action(latent, arm) -> None`` changes the latent state by the action; by default actions have no effect.
    draw_reward_ : callable, optional
        ``draw_reward(latent, arm, noise) -> float`` returns the reward of an arm, given the noise that `advance_`
        returned; by default means[arm] + sd[arm] · noise.

    Raises
    ------
    TypeError
        If the class is already bound to other functions.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from typing import NamedTuple
    >>> import larl
    >>> from larl.policies import normal
    >>> from larl.worlds import World, register_latent, start_bits, step_bits
    >>> class WalkState(NamedTuple):
    ...     means: np.ndarray
    ...     sd: np.ndarray
    >>> def begin(latent, seed, trial):
    ...     latent.means[:] = 0.0
    >>> def advance(latent, key, t):
    ...     bits = step_bits(key, t)
    ...     for arm in range(latent.means.size):
    ...         latent.means[arm] += 0.1 * normal(bits)
    ...     return normal(bits)
    >>> register_latent(WalkState, begin, advance)
    >>> @dataclass(frozen=True)
    ... class RandomWalk(World):
    ...     arms: int = 2
    ...     k = 0
    ...     def latent(self):
    ...         return WalkState(np.zeros(self.arms), np.ones(self.arms))
    >>> larl.compare({"UCB": larl.UCB()}, RandomWalk(), horizon=50, trials=10).summary()["mean"].round(0).item()
    4.0
    """
    implement(begin, state, begin_)
    implement(advance, state, advance_)
    if apply_action_ is not None:
        implement(apply_action, state, apply_action_)
    if draw_reward_ is not None:
        implement(draw_reward, state, draw_reward_)


@inline
def start_bits(seed: int, trial: int) -> Bits:
    """Return the random bits of a trial's start, for `larl.policies.uniform`, `pick` and `normal`."""
    bits = empty_bits()
    seed_bits(bits, random_bits(stream(seed, trial, START), 0))
    return bits


@inline
def step_bits(key: np.uint64, t: int) -> Bits:
    """Return the random bits of step t, for `larl.policies.uniform`, `pick` and `normal`."""
    bits = empty_bits()
    seed_bits(bits, random_bits(key, t))
    return bits
