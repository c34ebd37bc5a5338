"""Weights and resampling: how much each particle of a population counts.

A population holds particles of one model, for example one order p. Each reward multiplies a particle's weight by its
predictive density; the sum of a population's weights is its evidence. When the effective sample size is too small, the
particles are resampled. `x` holds the blocks of one population, one below the other, each with `fields.end` rows.
"""

import math

import numpy as np

from larl._core.compile import inline, inner
from larl.policies.auto.layout import FieldOffsets
from larl.policies.auto.soa import LANES, Floats, Row, broadcast, exp, load, maximum, store, sum_lanes


@inline
def tempered_log_weight(x: Floats, fields: FieldOffsets, row: int, fraction: float) -> Row:
    """Return the log weights of a block after `fraction` of the last reward's log-likelihood gain."""
    gain = load(x, row + fields.log_lik) - load(x, row + fields.log_lik_before)
    return load(x, row + fields.log_weight) + broadcast(fraction) * gain


@inner
def effective_share(x: Floats, fields: FieldOffsets, fraction: float) -> tuple[float, float]:
    """Return effective sample size / number of particles, and evidence, after `fraction` of the last reward's gain."""
    largest, top = broadcast(-math.inf), -math.inf
    for row in range(0, x.shape[0], fields.end):
        largest = maximum(largest, tempered_log_weight(x, fields, row, fraction))
    store(x, fields.tmp1, largest)
    for lane in range(LANES):
        top = max(top, x[fields.tmp1, lane])
    total, squares = broadcast(0.0), broadcast(0.0)
    for row in range(0, x.shape[0], fields.end):
        value = exp(tempered_log_weight(x, fields, row, fraction) - broadcast(top))
        total += value
        squares += value * value
    weight = sum_lanes(total)
    return weight * weight * fields.end / (sum_lanes(squares) * x.shape[0] * LANES), top + math.log(weight)


@inner
def reweight(x: Floats, fields: FieldOffsets, fraction: float) -> None:
    """Add `fraction` of the last reward's log-likelihood gain to the log weights."""
    for row in range(0, x.shape[0], fields.end):
        store(x, row + fields.log_weight, tempered_log_weight(x, fields, row, fraction))


@inner
def systematic_resample(x: Floats, fields: FieldOffsets, evidence: float, u: float) -> None:
    """Resample in place (systematic): each particle gets its share of the evidence in copies, rounded up or down."""
    rows, weight = fields.end, fields.log_weight
    count = x.shape[0] // rows * LANES
    cumulative, assigned, pairs, free = u, 0, 0, 0
    copies = np.empty(count, np.int64)
    source, target = np.empty(count, np.int64), np.empty(count, np.int64)  # particles that are copied, and where to
    for i in range(count):
        cumulative += count * math.exp(x[i // LANES * rows + weight, i % LANES] - evidence)
        copies[i] = min(np.int64(cumulative), count) - assigned
        assigned += copies[i]
    for i in range(count):
        for _ in range(1, copies[i]):
            while copies[free] > 0:
                free += 1
            source[pairs], target[pairs] = i, free
            pairs, free = pairs + 1, free + 1
    for i in range(weight):
        for j in range(pairs):
            block, other = source[j] // LANES * rows, target[j] // LANES * rows
            x[other + i, target[j] % LANES] = x[block + i, source[j] % LANES]
    for row in range(0, x.shape[0], rows):
        store(x, row + weight, broadcast(evidence - math.log(count)))
