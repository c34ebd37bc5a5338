"""What a cohort does with the State of all its units, compiled: go through what happened, in order of decisions."""

from typing import Any

from larl._core.compile import entry_point
from larl.live.kernels import Ints, teach
from larl.policies._pooling import unit_view
from larl.policies._probabilities import Floats


@entry_point
def go_together(crowd: Any, units: Ints, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int) -> None:
    """Teach a crowd the steps first … end − 1, each one unit's."""
    for i in range(first, end):
        teach(unit_view(crowd, units[i]), contexts[i], arms[i], rewards[i])
