"""Cohorts × time, compiled: many units that learn together, round by round.

Unit u of cohort c, of n units each, has the world and the words of the engine's trial cn + u; what the policy shares is
one for all units of a cohort. A cohort is a pure function of (spec, world, seed, c).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import copy_fields, entry_point
from larl.policies._pooling import stacked, unit_view
from larl.simulation.engine import Trace, play_steps
from larl.worlds.kernels import begin


@entry_point
def play_rounds(worlds: Any, units: Any, seed: int, cohort: int, first: int, trace: Trace) -> None:
    """Rounds first, first + 1, … of a cohort: at each, all units decide and learn, one after another.

    The trace is (units, rounds); the crowds `worlds` and `units` are as the round before left them.
    """
    count, rounds = trace.regret.shape
    for t in range(first, first + rounds):
        for unit in range(count):
            latent, state, trial = unit_view(worlds, unit), unit_view(units, unit), cohort * count + unit
            if t == 0:
                begin(latent, seed, trial)
            i = t - first
            step = Trace(trace.regret[unit, i : i + 1], trace.arm[unit, i : i + 1], trace.reward[unit, i : i + 1])
            play_steps(latent, state, seed, trial, t, step)


def empty_trace(rows: int, steps: int) -> Trace:
    """Room for so many trials or units, of so many steps."""
    return Trace(np.empty((rows, steps)), np.empty((rows, steps), dtype=np.int16), np.empty((rows, steps)))


class Rounds:
    """One cohort of `count` units, played as far as is asked for."""

    def __init__(self, latent: Any, state: Any, count: int, seed: int, cohort: int) -> None:
        self._worlds, self._units = stacked(latent, count), stacked(copy_fields(state), count)
        self._count, self._seed, self._cohort, self._t = count, seed, cohort, 0

    def play(self, rounds: int) -> Trace:
        """The next rounds: (units, rounds)."""
        trace = empty_trace(self._count, rounds)
        play_rounds(self._worlds, self._units, self._seed, self._cohort, self._t, trace)
        self._t += rounds
        return trace

    def sums(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of every unit the regret of steps 0 … times[j], for every j."""
        parts = [self.play(steps).regret.sum(axis=1) for steps in np.diff(times, prepend=-1).tolist()]
        return np.cumsum(parts, axis=0).T
