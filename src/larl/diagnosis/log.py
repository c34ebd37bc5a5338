"""A log of decisions as arrays: rows with a reward, unit by unit, in order of time."""

from dataclasses import dataclass

import numpy as np

from larl.diagnosis.brief import brief
from larl.diagnosis.kernels import Floats, Ints


@dataclass(frozen=True, repr=False)
class Log:
    """Rows with a reward, unit by unit, in order of time. Steps without a reward are gaps between rows."""

    arm: Ints
    gap: Ints  # steps since the row before; 0 at a unit's first row, −1 at the first row of a later piece of a unit
    reward: Floats  # less the effect of contexts, if there are any
    unit: Ints
    step: Ints  # of the unit, from 0
    labels: tuple[str, ...]  # of the arms
    units: int
    missing: int  # rows without a reward
    notes: tuple[str, ...]  # what was decided about the log and is worth knowing
    one_step: str = "one decision of a unit"  # what a step is
    time: Floats | None = None  # of each row: seconds, or the number in the time column; None if not known
    clock: Floats | None = None  # local time of each row in seconds since 1970-01-01; None where there are no dates
    adjusted: tuple[str, ...] = ()  # contexts whose effect was taken off the rewards
    observed: Floats | None = None  # rewards with that effect; None where there are no contexts

    def __repr__(self) -> str:
        return brief(self)

    @property
    def rows(self) -> int:
        """How many rewards there are."""
        return int(self.reward.size)

    @property
    def arms(self) -> int:
        """How many different actions there are."""
        return len(self.labels)

    @property
    def plays(self) -> Ints:
        """How many rewards each arm has."""
        return np.bincount(self.arm, minlength=self.arms)

    @property
    def observed_rewards(self) -> Floats:
        """Rewards as they are in the log."""
        return self.reward if self.observed is None else self.observed
