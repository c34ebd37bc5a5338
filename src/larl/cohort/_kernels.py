"""What a cohort does with the State of all its units, compiled: go through what happened, in order of decisions."""

from typing import Any

from larl._compile import entry
from larl.agent._kernels import Ints, teach
from larl.policies._odds import Floats
from larl.policies._pooling import unit_of


@entry
def go_together(
    crowd: Any, units: Ints, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int
) -> None:  # fmt: skip
    """Teach a crowd the steps first … end − 1, each one unit's."""
    for i in range(first, end):
        teach(unit_of(crowd, units[i]), contexts[i], arms[i], rewards[i])
