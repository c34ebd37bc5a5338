"""The compiled simulation loop of a cohort: many units that decide and learn step by step.

Unit u of cohort c, with n units in each cohort, has the world and the random bits of the engine's trial c·n + u. The
shared parts of the policy's State exist once for each cohort. A cohort is a pure function of (policy, world, seed, c).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import copy_fields, entry_point
from larl.policies._pooling import stack_units, unit_view
from larl.simulation.engine import Trace, empty_trace, run_steps
from larl.worlds.kernels import begin


@entry_point
def run_cohort_steps(worlds: Any, states: Any, seed: int, cohort: int, first: int, trace: Trace) -> None:
    """Simulate steps first, first + 1, … of a cohort; at each step the units decide and learn one after another.

    The trace has shape (units, steps). `worlds` and `states` are stacked over units and are updated in place.
    """
    units, steps = trace.regret.shape
    for t in range(first, first + steps):
        for unit in range(units):
            latent, state, trial = unit_view(worlds, unit), unit_view(states, unit), cohort * units + unit
            if t == 0:
                begin(latent, seed, trial)
            i = t - first
            step = Trace(trace.regret[unit, i : i + 1], trace.arm[unit, i : i + 1], trace.reward[unit, i : i + 1])
            run_steps(latent, state, seed, trial, t, step)


class CohortSimulation:
    """One cohort, simulated step by step on demand."""

    def __init__(self, latent: Any, state: Any, units: int, seed: int, cohort: int) -> None:
        self._worlds, self.states = stack_units(latent, units), stack_units(copy_fields(state), units)
        self._units, self._seed, self._cohort, self._t = units, seed, cohort, 0

    def run(self, steps: int) -> Trace:
        """Simulate the next steps and return their trace, of shape (units, steps)."""
        trace = empty_trace(self._units, steps)
        run_cohort_steps(self._worlds, self.states, self._seed, self._cohort, self._t, trace)
        self._t += steps
        return trace

    def cumulative_regret(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each unit's regret of steps 0 … times[j], of shape (units, times)."""
        parts = [self.run(steps).regret.sum(axis=1) for steps in np.diff(times, prepend=-1).tolist()]
        return np.cumsum(parts, axis=0).T
