"""Review of all rewards: which of them are outliers, given what was learnt since.

The parameters are those of the particle with the largest weight. A first pass, with the present inflations, gives a
robust estimate of σ²; a second one finds the outliers.
"""

import numpy as np

from larl._core.compile import inline, inner
from larl.policies.auto.belief import fill
from larl.policies.auto.layout import FieldOffsets, field_offsets
from larl.policies.auto.outliers import MAX_INFLATION, RUN_LENGTH, THRESHOLD, THRESHOLD_REWARDS, refilter
from larl.policies.auto.particle_kalman import time_update
from larl.policies.auto.populations import best_population, blocks_of, expected_levels, model_of
from larl.policies.auto.replay import filter_step, occurs_elsewhere
from larl.policies.auto.soa import LANES, Floats, aligned_rows, load, store
from larl.policies.auto.state import SMCState

MEDIAN_SQUARE = 0.4549364  # median of χ² with one degree of freedom
REVIEW_GROWTH = 1.5  # all rewards are reviewed whenever their number has grown by this factor
NO_ERROR = -1.0  # squared error of a step without a prediction error


@inner
def review_outliers(state: SMCState, t: int) -> None:
    """Decide again which rewards up to step t are outliers, given all of them; called after some steps."""
    best, size = best_population(state), state.history.arm.size
    if best < 0 or state.history.arm[t % size] < 0:
        return
    first = state.populations.first[best]
    squares, inflation = np.zeros(t + 1 - first), np.ones(t + 1 - first)
    row, lane = heaviest_particle(state, best)
    find_squared_errors(state, best, row, lane, squares)
    find_outliers(state, best, row, lane, positive_median(squares) / MEDIAN_SQUARE, inflation)
    changed = set_inflations(state, first, inflation)
    if changed >= 0:
        refilter(state, t, changed)


@inner
def heaviest_particle(state: SMCState, population: int) -> tuple[int, int]:
    """Return the first row of the block, and the column, of the particle with the largest weight."""
    fields = field_offsets(model_of(state, population))
    x, top, top_lane = blocks_of(state, population, fields), 0, 0
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            if x[row + fields.log_weight, lane] > x[top + fields.log_weight, top_lane]:
                top, top_lane = row, lane
    return top, top_lane


@inline
def copy_belief(block: Floats, fields: FieldOffsets, target: int, source: int) -> None:
    """Copy a belief within a block; it starts at row `mean` or `window_start`."""
    for i in range(fields.window_start - fields.mean):
        store(block, target + i, load(block, source + i))


@inner
def begin_pass(state: SMCState, population: int, row: int) -> Floats:
    """Return a copy of a block with the belief before the first step that can be replayed."""
    pops, fields = state.populations, field_offsets(model_of(state, population))
    x, block = blocks_of(state, population, fields), aligned_rows(fields.end)
    for i in range(fields.end):
        store(block, i, load(x, row + i))
    if pops.first[population] > pops.born[population]:
        copy_belief(block, fields, fields.mean, fields.window_start)
    else:
        fill(block, fields.squared_error, pops.prior_square[population])
    return block


@inner
def squared_error(state: SMCState, population: int, block: Floats, lane: int, step: int, inflation: float) -> float:
    """Filter one step of a pass; return the squared error of its prediction / S, or NO_ERROR without a prediction."""
    kind, history = model_of(state, population), state.history
    fields, i, age = field_offsets(kind), step % history.arm.size, step - state.populations.born[population]
    if history.arm[i] < 0:
        time_update(block, fields, kind, age + 1)
        return NO_ERROR
    before = block[fields.squared_error, lane]
    arm, reward, level = history.arm[i], history.reward[i], expected_levels(state, population)
    filter_step(block, fields, kind, age, arm, reward, inflation, 1.0, 1.0, level, history.context, i)
    return block[fields.squared_error, lane] - before if age > 0 else NO_ERROR


@inner
def find_squared_errors(state: SMCState, population: int, row: int, lane: int, squares: Floats) -> None:
    """Set `squares` to the squared errors / S of all steps, with the present inflations."""
    block, first = begin_pass(state, population, row), state.populations.first[population]
    for i in range(squares.size):
        inflation = state.history.inflation[(first + i) % state.history.arm.size]
        squares[i] = squared_error(state, population, block, lane, first + i, inflation)


@inner
def find_outliers(state: SMCState, population: int, row: int, lane: int, variance: float, inflation: Floats) -> None:
    """Set `inflation` of the steps whose squared errors are too large for σ² = `variance`.

    Rewards that occur more than once, and a run of large errors, are not outliers.
    """
    history, size = state.history, state.history.arm.size
    fields, run = field_offsets(model_of(state, population)), 0  # large errors among the last rewards
    block, first = begin_pass(state, population, row), state.populations.first[population]
    limit = THRESHOLD * (1.0 + THRESHOLD_REWARDS / max(inflation.size, 1)) * variance
    for i in range(inflation.size):
        copy_belief(block, fields, fields.window_start, fields.mean)
        square = squared_error(state, population, block, lane, first + i, 1.0)
        index = (first + i) % size
        is_large = square > limit > 0.0
        if is_large and not occurs_elsewhere(history, min(state.time[0], size), history.reward[index], index):
            inflation[i] = min(square / variance, MAX_INFLATION)
            run += 1
            if run == RUN_LENGTH:
                run = 0
                unmark_last(inflation, i)
            else:
                copy_belief(block, fields, fields.mean, fields.window_start)
                squared_error(state, population, block, lane, first + i, inflation[i])
        elif square >= 0.0:
            run = 0


@inline
def unmark_last(inflation: Floats, last: int) -> None:
    """Set the last RUN_LENGTH inflations above 1, up to index `last`, to 1."""
    count, i = 0, last
    while count < RUN_LENGTH and i >= 0:
        count += inflation[i] > 1.0
        inflation[i] = 1.0
        i -= 1


@inner
def set_inflations(state: SMCState, first: int, inflation: Floats) -> int:
    """Mark and unmark outliers in the history from step `first` on; return the index of the first change, or −1."""
    history, changed = state.history, -1
    for i in range(inflation.size):
        step = (i + first) % history.arm.size
        if (history.inflation[step] > 1.0) != (inflation[i] > 1.0):
            history.inflation[step] = inflation[i]
            changed = step if changed < 0 else changed
    return changed


@inner
def positive_median(values: Floats) -> float:
    """Return the median of the values that are not negative; 0 if there are none."""
    ordered, count = np.sort(values), 0
    while count < ordered.size and ordered[count] < 0.0:
        count += 1
    return ordered[(count + ordered.size) // 2] if count < ordered.size else 0.0
