"""Do units drift together? A permutation test of rewards that different units get at the same time.

Each permutation rotates every unit's residuals by a random number of rows. This keeps the memory within a unit and
removes what units have in common at a time.
"""

import math
from typing import NamedTuple

import numpy as np

from larl.diagnosis.drift import (
    FEWER_PERMUTATIONS,
    MANY_ROWS,
    PERMUTATIONS,
    SIGNIFICANCE_LEVEL,
    min_p_value,
    residuals,
)
from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import arm_contrast, step_numbers

INTERVAL_WIDTHS = (1, 4, 16)  # times in one interval count as equal; in units of the median time between rows
MIN_ROWS_PER_UNIT = 5  # on average
MIN_PAIRS = 20  # of rows of different units at the same time
BATCH_NUMBERS = 1_000_000  # permuted at once


class SharedDrift(NamedTuple):
    """Result of the test."""

    p_value: float  # nan if there is too little data
    correlation: float  # of the rewards of two units at the same time, given arm and unit

    @property
    def is_detected(self) -> bool:
        """Whether units drift together."""
        return self.p_value <= SIGNIFICANCE_LEVEL


def find_shared_drift(log: Log, seed: int = 0) -> SharedDrift:
    """Run the test with 999 random rotations of every unit; 199 for large logs."""
    untested = SharedDrift(math.nan, math.nan)
    if log.units < 2 or log.rows < MIN_ROWS_PER_UNIT * log.units:
        return untested
    groupings = [_group_rows(log, width) for width in INTERVAL_WIDTHS]
    weights = np.array([np.ones(log.arms), arm_contrast(log)])[: min(log.arms, 2)]
    residual, _ = residuals(log)
    series, sizes = weights[:, log.arm] * residual, (weights**2)[:, log.arm]
    pairs = float(_cross_products(sizes[:1], *groupings[0])[0])
    if pairs < 2 * MIN_PAIRS:
        return untested
    generator = np.random.default_rng([seed, 2])
    length = np.bincount(log.unit)
    first = np.concatenate([[0], np.cumsum(length)[:-1]])[log.unit]
    position = np.arange(log.rows) - first
    rotations = 1 + (PERMUTATIONS if log.rows <= MANY_ROWS else FEWER_PERMUTATIONS)
    batch = max(1, BATCH_NUMBERS // log.rows)
    values = np.empty((rotations, len(series) * len(groupings)))
    for start in range(0, rotations, batch):
        shift = generator.integers(length, size=(min(batch, rotations - start), length.size))
        if start == 0:
            shift[0] = 0  # the log as it is
        rotated = first + (position + shift[:, log.unit]) % length[log.unit]
        sums = [_cross_products(each[rotated], *grouping) for each in series for grouping in groupings]
        values[start : start + shift.shape[0]] = np.array(sums).T
    best = int(np.argmax(values[0, :: len(groupings)]))
    return SharedDrift(min_p_value(values), float(values[0, best * len(groupings)] / pairs))


def _group_rows(log: Log, width: int) -> tuple[Ints, Ints]:
    """Return each row's cell (unit and time interval), and each cell's interval."""
    steps = step_numbers(log)
    is_numbered = log.time is None or steps is log.time
    time = steps if log.time is None else (log.clock if is_numbered and log.clock is not None else log.time)
    same_unit = np.diff(log.unit) == 0
    median_gap = float(np.median(np.diff(time)[same_unit])) or 1.0
    interval = np.floor((time - time.min()) / (width * median_gap) + 1e-9).astype(np.int64)
    _, interval = np.unique(interval, return_inverse=True)
    cells, cell = np.unique(interval * log.units + log.unit, return_inverse=True)
    return cell, cells // log.units


def _cross_products(series: Floats, cell: Ints, interval: Ints) -> Floats:
    """Return, for each series, the sum of x_i x_j over ordered pairs of rows of different units in one interval."""
    by_cell = _group_sums(series, cell, interval.size)
    by_interval = _group_sums(by_cell, interval, int(interval.max()) + 1)
    result: Floats = np.sum(by_interval**2, axis=1) - np.sum(by_cell**2, axis=1)
    return result


def _group_sums(values: Floats, group: Ints, groups: int) -> Floats:
    """Return the sums over the columns of each group, for each row."""
    rows = values.shape[0]
    index = np.arange(rows)[:, None] * groups + group
    result: Floats = np.bincount(index.ravel(), values.ravel(), rows * groups).reshape(rows, groups).astype(float)
    return result
