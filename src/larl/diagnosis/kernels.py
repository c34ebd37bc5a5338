"""Compiled sums over pairs of rows, for the permutation test of drift.

`gap` is the number of steps since the previous row; 0 starts a unit, −1 starts a later segment of a unit.
"""

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel
from larl._core.random import POLICY, bits_to_index, random_bits, stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def pair_sums(arm: Ints, gap: Ints, lags: int, residual: Floats, sums: Floats) -> None:
    """Add e_t e_{t−ℓ} to sums[ℓ−1, a, b] for all pairs of rows of a unit that are ℓ ≤ lags steps apart.

    a and b are the arms of the later and of the earlier row.
    """
    for t in range(arm.size):
        lag, earlier = 0, t
        while earlier > 0 and gap[earlier] > 0:
            lag += gap[earlier]
            earlier -= 1
            if lag > lags:
                break
            sums[lag - 1, arm[t], arm[earlier]] += residual[t] * residual[earlier]


@kernel
def permuted_pair_sums(
    arm: Ints, gap: Ints, order: Ints, first: Ints, lags: int, residual: Floats, seed: int, sums: Floats
) -> None:
    """Set each of sums.shape[0] arrays to the `pair_sums` of a log whose residuals are permuted within every cell.

    `order` lists rows cell by cell; cell c is order[first[c]] … order[first[c + 1] − 1].
    """
    permuted = np.empty(residual.size)
    for i in range(residual.size):
        permuted[i] = residual[i]
    for permutation in range(sums.shape[0]):
        key = stream(seed, permutation, POLICY)
        for c in range(first.size - 1):
            for i in range(first[c + 1] - 1, first[c], -1):
                j = first[c] + bits_to_index(random_bits(key, i), i - first[c] + 1)
                row, other = order[i], order[j]
                permuted[row], permuted[other] = permuted[other], permuted[row]
        pair_sums(arm, gap, lags, permuted, sums[permutation])
