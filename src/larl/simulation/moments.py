"""Running mean, variance and quantiles of many curves, in memory that does not grow with their number."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel

Floats = NDArray[np.float64]
BIN_RATIO = 1.01  # upper over lower edge of a bin: the relative error of a quantile is at most 0.5%
SMALLEST, BINS = 1e-6, 4200  # bins from 1e-6 to 1e12; smaller values count as 0
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


class Moments(NamedTuple):
    """Running mean, variance and histogram of cumulative regret at each recorded time."""

    curves: NDArray[np.int64]  # (1,) number of curves
    mean: Floats  # (times,)
    squares: Floats  # (times,) sum of squared deviations from the mean
    bins: NDArray[np.int32]  # (times, BINS) number of values in each bin


def empty_moments(times: int) -> Moments:
    """Return the moments of zero curves."""
    return Moments(np.zeros(1, dtype=np.int64), np.zeros(times), np.zeros(times), np.zeros((times, BINS), np.int32))


@kernel
def add_curves(moments: Moments, curves: Floats) -> None:
    """Add curves (rows of non-negative numbers) one after another (Welford 1962)."""
    for row in range(curves.shape[0]):
        moments.curves[0] += 1
        for j in range(curves.shape[1]):
            value = curves[row, j]
            deviation = value - moments.mean[j]
            moments.mean[j] += deviation / moments.curves[0]
            moments.squares[j] += deviation * (value - moments.mean[j])
            index = 0
            if value > SMALLEST:
                position = math.log(value / SMALLEST) / math.log(BIN_RATIO)  # infinite for values near the largest
                index = int(min(position, BINS - 2.0)) + 1
            moments.bins[j, index] += 1


def variance(moments: Moments) -> Floats:
    """Return the sample variance at each time, 0 for a single curve."""
    return moments.squares / max(int(moments.curves[0]) - 1, 1)


def quantiles(moments: Moments) -> Floats:
    """Return the quantiles LEVELS, of shape (levels, times): the geometric centre of the bin of each quantile."""
    cumulative = np.cumsum(moments.bins, axis=1)
    result = np.empty((len(LEVELS), moments.mean.size))
    for i, level in enumerate(LEVELS):
        rank = max(math.ceil(level * int(moments.curves[0])), 1)
        index = np.argmax(cumulative >= rank, axis=1)
        result[i] = np.where(index == 0, 0.0, SMALLEST * BIN_RATIO ** (index - 0.5))
    return result
