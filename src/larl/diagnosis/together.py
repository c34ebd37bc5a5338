"""Do units drift together? A permutation test of rewards that different units got at the same time.

Each unit's residuals are shifted round in time by a random number of its rows. This keeps the memory that a unit has by
itself, and destroys what units have in common at one time.
"""

import math
from typing import NamedTuple

import numpy as np

from larl.diagnosis.drift import FEWER, LEVEL, MANY_ROWS, SHUFFLES, p_value, residuals
from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import contrast, step_numbers

WIDTHS = (1, 4, 16)  # of the intervals in which times count as the same, in units of the narrowest
FEWEST_ROWS = 5  # of a unit, on average
FEWEST_PAIRS = 20  # rows of different units at the same time
NUMBERS = 1_000_000  # that are shuffled at once


class Together(NamedTuple):
    """What the test found."""

    p_value: float  # nan where nothing could be tested
    correlation: float  # of rewards that two units got at the same time, given arm and unit

    @property
    def found(self) -> bool:
        """Whether units drift together."""
        return self.p_value <= LEVEL


def find_together(log: Log, seed: int = 0) -> Together:
    """The test, with 999 random shifts of every unit; 199 in large logs."""
    nothing = Together(math.nan, math.nan)
    if log.units < 2 or log.rows < FEWEST_ROWS * log.units:
        return nothing
    slots = [_slots(log, width) for width in WIDTHS]
    weights = np.array([np.ones(log.arms), contrast(log)])[: min(log.arms, 2)]
    away, _ = residuals(log)
    series, sizes = weights[:, log.arm] * away, (weights**2)[:, log.arm]
    pairs = float(_sums(sizes[:1], *slots[0])[0])
    if pairs < 2 * FEWEST_PAIRS:
        return nothing
    generator = np.random.default_rng([seed, 2])
    length = np.bincount(log.unit)
    first = np.concatenate([[0], np.cumsum(length)[:-1]])[log.unit]
    place = np.arange(log.rows) - first
    shuffles = 1 + (SHUFFLES if log.rows <= MANY_ROWS else FEWER)
    batch = max(1, NUMBERS // log.rows)
    found = np.empty((shuffles, len(series) * len(slots)))
    for start in range(0, shuffles, batch):
        shift = generator.integers(length, size=(min(batch, shuffles - start), length.size))
        if start == 0:
            shift[0] = 0  # the log as it is
        moved = first + (place + shift[:, log.unit]) % length[log.unit]
        sums = [_sums(each[moved], *slot) for each in series for slot in slots]
        found[start : start + shift.shape[0]] = np.array(sums).T
    best = int(np.argmax(found[0, :: len(slots)]))
    return Together(p_value(found), float(found[0, best * len(slots)] / pairs))


def _slots(log: Log, width: int) -> tuple[Ints, Ints]:
    """For each row the number of its unit and interval of time, and for each such number that of the interval."""
    numbers = step_numbers(log)
    numbered = log.time is None or numbers is log.time
    time = numbers if log.time is None else (log.clock if numbered and log.clock is not None else log.time)
    same = np.diff(log.unit) == 0
    usual = float(np.median(np.diff(time)[same])) or 1.0
    interval = np.floor((time - time.min()) / (width * usual) + 1e-9).astype(np.int64)
    _, interval = np.unique(interval, return_inverse=True)
    cells, cell = np.unique(interval * log.units + log.unit, return_inverse=True)
    return cell, cells // log.units


def _sums(series: Floats, cell: Ints, interval: Ints) -> Floats:
    """For each series (row) the sum of x_i x_j over ordered pairs of rows of different units in one interval."""
    mine = _totals(series, cell, interval.size)
    result: Floats = np.sum(_totals(mine, interval, int(interval.max()) + 1) ** 2, axis=1) - np.sum(mine**2, axis=1)
    return result


def _totals(values: Floats, group: Ints, groups: int) -> Floats:
    """Sums over the columns of each group, for each row."""
    rows = values.shape[0]
    place = np.arange(rows)[:, None] * groups + group
    result: Floats = np.bincount(place.ravel(), values.ravel(), rows * groups).reshape(rows, groups).astype(float)
    return result
