"""A log of decisions as arrays."""

from dataclasses import dataclass

import numpy as np

from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.short_repr import short_repr


@dataclass(frozen=True, repr=False)
class Log:
    """The rows of a log that have a reward, unit by unit, in order of time. Steps without a reward are gaps."""

    arm: Ints
    gap: Ints  # steps since the previous row; 0 at a unit's first row, −1 at the first row of a later segment
    reward: Floats  # without the effect of contexts, if there are any
    unit: Ints
    step: Ints  # of the unit, from 0
    labels: tuple[str, ...]  # of the arms
    units: int
    missing: int  # rows without a reward
    notes: tuple[str, ...]  # how the log was read, for the user
    step_name: str = "one decision of a unit"  # what a step is
    time: Floats | None = None  # of each row: seconds, or the number in the time column; None if unknown
    clock: Floats | None = None  # local time of each row in seconds since 1970-01-01; None without dates
    adjusted: tuple[str, ...] = ()  # contexts whose effect was removed from the rewards
    raw_reward: Floats | None = None  # rewards with that effect; None without contexts
    unit_column: str | None = None  # None if the log has no column of the unit

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def rows(self) -> int:
        """Number of rewards."""
        return int(self.reward.size)

    @property
    def arms(self) -> int:
        """Number of different actions."""
        return len(self.labels)

    @property
    def plays(self) -> Ints:
        """Number of rewards of each arm."""
        return np.bincount(self.arm, minlength=self.arms)

    @property
    def observed_rewards(self) -> Floats:
        """The rewards as they are in the log."""
        return self.reward if self.raw_reward is None else self.raw_reward
