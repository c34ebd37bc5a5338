"""Step through one trial of a world by hand."""

from typing import Any

import numpy as np

from larl._core.random import WORLD, policy_bits, stream_key
from larl._core.states import Memory
from larl._core.validation import integer, short
from larl.worlds.base import World, validate_world
from larl.worlds.kernels import (
    ADVANCE,
    APPLY,
    BEGIN,
    REGRET,
    REWARD,
    Floats,
    WorldHandle,
    operate,
)


class Simulator:
    """One trial of a world, step by step, with the same states and noise as `larl.compare` in that trial.

    Parameters
    ----------
    world : World
        The world.
    seed : int, >= 0
        Seed of the comparison.
    trial : int, >= 0
        Number of the trial.

    Attributes
    ----------
    time : int
        The current step, from 0.

    Examples
    --------
    >>> import larl
    >>> simulator = larl.worlds.Simulator(larl.worlds.paper(1), seed=0, trial=0)
    >>> total = 0.0
    >>> for _ in range(10):
    ...     arm = int(simulator.means.argmax())
    ...     total += simulator.reward(arm)
    ...     simulator.advance(arm)
    >>> round(total, 2)
    112.96
    >>> str(simulator).endswith("seed=0, trial=0, time=10)")
    True
    """

    def __init__(self, world: World, seed: int, trial: int) -> None:
        seed, trial = (integer(0, 2**63 - 1)("Simulator", *each) for each in (("seed", seed), ("trial", trial)))
        world = validate_world("Simulator", "world", world)
        self._world, self._seed, self._trial = world, seed, trial
        self._memory = Memory(world.latent())
        self._latent, self._handle = self._memory.state(), WorldHandle.of(self._memory)
        self._out = np.zeros(2)  # regret and reward noise of the step
        self._operate(BEGIN, seed, number=trial)
        self.time = -1
        self.advance()

    def __reduce__(self) -> tuple[Any, ...]:  # compiled functions have the addresses of its arrays
        return _restored, (self._world, self._seed, self._trial, self.time, self._memory.own.copy(), self._out.copy())

    def __repr__(self) -> str:
        return f"Simulator({short(self._world)}, seed={self._seed}, trial={self._trial}, time={self.time})"

    def advance(self, arm: int | None = None) -> None:
        """Move to the next step.

        Parameters
        ----------
        arm : int, 0 to number of arms − 1, optional
            The arm that was played. Needed only if actions affect the world (`larl.worlds.Burden`).

        Raises
        ------
        larl.InvalidValue
            If there is no such arm.

        Examples
        --------
        >>> import larl
        >>> world = larl.worlds.Burden(larl.worlds.paper(1), effect=(0.0, -2.0))
        >>> for arm in (0, 1):
        ...     simulator = larl.worlds.Simulator(world, seed=0, trial=0)
        ...     simulator.advance(arm)
        ...     print(simulator.time, round(simulator.z, 2))
        1 -16.05
        1 -18.05
        """
        if arm is not None:
            self._operate(APPLY, number=self._validate_arm(arm))
        self.time += 1
        self._operate(ADVANCE, int(stream_key(self._seed, self._trial, WORLD)), step=self.time)

    @property
    def bits(self) -> int:
        """The 64 random bits that a policy gets at this step."""
        return int(policy_bits(self._seed, self._trial, self.time))

    @property
    def z(self) -> Any:
        """The latent state of this step: a float, an array (m,) in a `LatentVAR`, an int in a
        `LatentMarkov`, the row of the table in a `Recorded`, nan in a world without one."""
        return self._world.state_of(self._latent)

    @property
    def means(self) -> Floats:
        """Mean reward of each arm at this step, (arms,). In a `Recorded`, the recorded rewards: nan if missing, and
        after the window."""
        return self._latent.means.copy()

    @property
    def context(self) -> Floats:
        """The context of this step, (p,); empty in a world without contexts."""
        return getattr(self._latent, "context", np.zeros(0)).copy()

    def reward(self, arm: int) -> float:
        """Return the reward of an arm at this step; nan if it is missing.

        Parameters
        ----------
        arm : int, 0 to number of arms − 1
            The arm.

        Returns
        -------
        float
            The reward. Repeated calls within a step return the same value.

        Raises
        ------
        larl.InvalidValue
            If there is no such arm.

        Examples
        --------
        >>> import larl
        >>> simulator = larl.worlds.Simulator(larl.worlds.paper(1), seed=0, trial=0)
        >>> [round(simulator.reward(arm), 2) for arm in (0, 1)]
        [16.32, -16.85]
        >>> simulator.reward(1) == simulator.reward(1)
        True
        """
        arm = self._validate_arm(arm)
        return self._operate(REWARD, number=arm)

    def regret(self, arm: int) -> float:
        """Return the regret of an arm at this step, that of `larl.compare`.

        Parameters
        ----------
        arm : int, 0 to number of arms − 1
            The arm.

        Returns
        -------
        float
            The largest mean reward minus that of the arm.

        Raises
        ------
        larl.InvalidValue
            If there is no such arm.

        Examples
        --------
        >>> import larl
        >>> simulator = larl.worlds.Simulator(larl.worlds.paper(1), seed=0, trial=0)
        >>> [round(simulator.regret(arm), 2) for arm in (0, 1)]
        [0.0, 33.17]
        """
        self._operate(REGRET, number=self._validate_arm(arm))
        return float(self._out[0])

    def _operate(self, operation: int, key: int = 0, number: int = 0, step: int = 0) -> float:
        return float(operate(self._handle, operation, np.uint64(key), number, step, self._out))

    def _validate_arm(self, arm: int) -> int:
        return int(integer(0, self._latent.means.size - 1)("Simulator", "arm", arm))


def _restored(world: World, seed: int, trial: int, time: int, own: Any, out: Any) -> Simulator:
    """The simulator that was pickled or copied."""
    simulator = Simulator(world, seed, trial)
    simulator.time, simulator._memory.own[...], simulator._out[...] = time, own, out
    return simulator
