"""Mean, variance and quantiles of many curves, one curve at a time, in memory that does not grow with their number."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel

Floats = NDArray[np.float64]
RATIO = 1.01  # upper over lower edge of a bin: quantiles are right to within 0.5%
SMALLEST, BINS = 1e-6, 4200  # bins from 1e-6 to 1e12; what is smaller counts as 0
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


class Moments(NamedTuple):
    """Running mean, variance and histogram of cumulative regret at each recorded time."""

    curves: NDArray[np.int64]  # (1,)
    mean: Floats  # (times,)
    squares: Floats  # (times,) sum of squared deviations from the mean
    bins: NDArray[np.int32]  # (times, BINS) how many values fell into each bin


def moments_init(times: int) -> Moments:
    """Moments of no curves yet, at so many times."""
    return Moments(np.zeros(1, dtype=np.int64), np.zeros(times), np.zeros(times), np.zeros((times, BINS), np.int32))


@kernel
def fold(moments: Moments, curves: Floats) -> None:
    """Take in curves (rows of non-negative numbers), one after another (Welford 1962)."""
    for row in range(curves.shape[0]):
        moments.curves[0] += 1
        for j in range(curves.shape[1]):
            value = curves[row, j]
            away = value - moments.mean[j]
            moments.mean[j] += away / moments.curves[0]
            moments.squares[j] += away * (value - moments.mean[j])
            place = 0
            if value > SMALLEST:
                place = min(int(math.log(value / SMALLEST) / math.log(RATIO)) + 1, BINS - 1)
            moments.bins[j, place] += 1


def variance(moments: Moments) -> Floats:
    """The sample variance at each time (zero for a single curve)."""
    return moments.squares / max(int(moments.curves[0]) - 1, 1)


def quantiles(moments: Moments) -> Floats:
    """The quantiles LEVELS at each time, shape (levels, times): the middle of the bin each falls into."""
    reached = np.cumsum(moments.bins, axis=1)
    result = np.empty((len(LEVELS), moments.mean.size))
    for i, level in enumerate(LEVELS):
        rank = max(math.ceil(level * int(moments.curves[0])), 1)
        place = np.argmax(reached >= rank, axis=1)
        result[i] = np.where(place == 0, 0.0, SMALLEST * RATIO ** (place - 0.5))
    return result
