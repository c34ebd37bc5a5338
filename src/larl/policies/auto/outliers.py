"""Outliers among continuous rewards: rewards whose prediction error is too large for the model's noise.

An outlier keeps its place in the history, with a noise variance that is inflated in proportion to its squared error, so
that it hardly changes a belief. All particles share the inflation. Without outliers, nothing changes. Two large errors
in a row are not outliers: the rewards have moved, and the filters must follow.
"""

import math

import numpy as np

from larl._core.compile import inner
from larl.policies.auto.layout import AR_STATE, CONTINUOUS, DAMPED_ROTATION, cov_index, field_offsets
from larl.policies.auto.moves import effective_share
from larl.policies.auto.particle_kalman import filter_step, replay_filter, time_update
from larl.policies.auto.smc import RESAMPLE_BELOW, blocks_of, largest_reward, model_of, resample, total_evidence
from larl.policies.auto.soa import LANES, copy
from larl.policies.auto.state import SMCState

MIN_REWARDS = 8  # no reward is an outlier before there are this many
THRESHOLD, THRESHOLD_REWARDS = 16.0, 20.0  # squared standardised error of an outlier: THRESHOLD(1 + … / rewards)
MAX_INFLATION = 1e12
MEDIAN_SQUARE = 0.4549364  # median of χ² with one degree of freedom
REVIEW_GROWTH = 1.5  # all rewards are reviewed whenever their number has grown by this factor


@inner
def squared_deviation(state: SMCState, arm: int, value: float) -> float:
    """Return the squared error of the prediction for a reward, divided by the variance that was predicted."""
    pops, t, evidence = state.populations, state.time[0], total_evidence(state)
    total, first, second = 0.0, 0.0, 0.0
    for population in range(pops.order.size):
        if pops.alive[population] and pops.next[population] == t:
            kind = model_of(state, population)
            fields, p = field_offsets(kind), kind.p
            x, age = blocks_of(state, population, fields), t - pops.born[population]
            z = kind.arms + (age % p if kind.form == AR_STATE and p > 0 else 0)
            for row in range(0, x.shape[0], fields.end):
                for lane in range(LANES):
                    weight = math.exp(x[row + fields.log_weight, lane] - evidence)
                    mean, cov = x[row + fields.mean + arm, lane], row + fields.cov
                    variance = x[cov + cov_index(arm, arm), lane] + x[row + fields.noise_variance + arm, lane]
                    if p > 0:
                        beta = x[row + fields.beta + arm, lane]
                        mean += beta * x[row + fields.mean + z, lane]
                        variance += 2.0 * beta * x[cov + cov_index(arm, z), lane]
                        variance += beta * beta * x[cov + cov_index(z, z), lane]
                    if kind.form == DAMPED_ROTATION:
                        kappa = x[row + fields.kappa + arm, lane]
                        mean += kappa * x[row + fields.mean + z + 1, lane]
                        variance += 2.0 * kappa * x[cov + cov_index(arm, z + 1), lane]
                        variance += 2.0 * kappa * x[row + fields.beta + arm, lane] * x[cov + cov_index(z, z + 1), lane]
                        variance += kappa * kappa * x[cov + cov_index(z + 1, z + 1), lane]
                    variance *= x[row + fields.squared_error, lane] / max(pops.seen[population], 1.0)
                    total += weight
                    first += weight * mean
                    second += weight * (mean * mean + max(variance, 0.0))
    if not total > 0.0:
        return 0.0
    mean = first / total
    variance = second / total - mean * mean
    return (value - mean) ** 2 / variance if variance > 0.0 else 0.0


@inner
def last_reward(state: SMCState, t: int) -> int:
    """Return the index in the history of the last reward before step t; −1 if there is none."""
    size = state.history.arm.size
    for step in range(t - 1, max(t - size, 0) - 1, -1):
        if state.history.arm[step % size] >= 0:
            return step % size
    return -1


@inner
def mark_outlier(state: SMCState, arm: int, value: float) -> float:
    """Return the inflation of the noise of a new reward; if the last one was an outlier too, neither is."""
    if state.rewards[0] != CONTINUOUS or state.seen[0] < MIN_REWARDS:
        return 1.0
    squared = squared_deviation(state, arm, value)
    if not squared > THRESHOLD * (1.0 + THRESHOLD_REWARDS / state.seen[0]):
        return 1.0
    last = last_reward(state, state.time[0])
    if last >= 0 and state.history.inflation[last] > 1.0:
        state.history.inflation[last] = 1.0
        refilter(state, state.time[0] - 1, last)
        return 1.0
    return min(squared, MAX_INFLATION)


@inner
def refilter(state: SMCState, t: int, changed: int) -> None:
    """Filter the history up to step t again and correct the weights, after a change of its inflations.

    `changed` is the index in the history of the first reward whose inflation changed.
    """
    pops, largest, before = state.populations, largest_reward(state.history, t + 1), total_evidence(state)
    end, size = t + 1, state.history.arm.size
    while state.history.arm[(end - 1) % size] < 0:
        end -= 1
    for population in range(pops.order.size):
        if pops.alive[population] and end > pops.first[population]:
            kind = model_of(state, population)
            fields = field_offsets(kind)
            x = blocks_of(state, population, fields)
            for row in range(0, x.shape[0], fields.end):
                block = x[row : row + fields.end]
                for lane in range(LANES):
                    block[fields.log_weight, lane] -= block[fields.log_lik, lane]
                replay_filter(
                    x=block,
                    fields=fields,
                    kind=kind,
                    history=state.history,
                    born=pops.born[population],
                    first=pops.first[population],
                    end=end,
                    seen=pops.seen[population],
                    prior_square=pops.prior_square[population],
                    largest=largest,
                )
                for step in range(end, t + 1):
                    time_update(block, fields, kind, step + 1 - pops.born[population])
                for lane in range(LANES):
                    block[fields.log_weight, lane] += block[fields.log_lik, lane]
            share, pops.evidence[population] = effective_share(x, fields, 0.0)
            if share < RESAMPLE_BELOW:
                resample(state, population, x, fields)
    gain = total_evidence(state) - before
    for i in range((t - changed) % size + 1):
        state.history.evidence[(changed + i) % size] += gain


@inner
def review_outliers(state: SMCState, t: int) -> None:
    """Decide again which rewards up to step t are outliers, given all of them; called after some steps.

    The parameters are those of the particle with the largest weight. A first pass, with the present inflations, gives
    a robust estimate of σ²; a second one finds the outliers.
    """
    pops, history, best = state.populations, state.history, -1
    size = history.arm.size
    for population in range(pops.order.size):
        if pops.alive[population] and (best < 0 or pops.evidence[population] > pops.evidence[best]):
            best = population
    if best < 0 or history.arm[t % size] < 0:
        return
    kind = model_of(state, best)
    fields = field_offsets(kind)
    x, x_top, top_lane = blocks_of(state, best, fields), 0, 0
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            if x[row + fields.log_weight, lane] > x[x_top + fields.log_weight, top_lane]:
                x_top, top_lane = row, lane
    block, height = state.candidate[: fields.end], fields.window_start - fields.mean
    squares, inflation = np.zeros(t + 1 - pops.first[best]), np.ones(t + 1 - pops.first[best])
    scale, changed = 0.0, -1
    for is_second in range(2):
        last = -1
        for i in range(fields.end):
            for lane in range(LANES):
                block[i, lane] = x[x_top + i, lane]
        for step in range(pops.first[best], t + 1):
            i, age = step - pops.first[best], step - pops.born[best]
            if i == 0 and age > 0:
                for j in range(height):
                    copy(block, fields.mean + j, fields.window_start + j)
            elif i == 0:
                for lane in range(LANES):
                    block[fields.squared_error, lane] = pops.prior_square[best]
            squares[i] = -1.0
            for j in range(height):
                copy(block, fields.window_start + j, fields.mean + j)
            if history.arm[step % size] >= 0:
                before = block[fields.squared_error, top_lane]
                factor = 1.0 if is_second else history.inflation[step % size]
                filter_step(
                    block, fields, kind, age, history.arm[step % size], history.reward[step % size], factor, 1.0, 1.0
                )
                squares[i] = block[fields.squared_error, top_lane] - before if age > 0 else -1.0
            else:
                time_update(block, fields, kind, age + 1)
            limit = THRESHOLD * (1.0 + THRESHOLD_REWARDS / squares.size) * scale
            if is_second and squares[i] > limit > 0.0:
                inflation[i] = min(squares[i] / scale, MAX_INFLATION)
                if last >= 0 and inflation[last] > 1.0:
                    inflation[last], inflation[i] = 1.0, 1.0
                else:
                    for j in range(height):
                        copy(block, fields.mean + j, fields.window_start + j)
                    filter_step(
                        block,
                        fields,
                        kind,
                        age,
                        history.arm[step % size],
                        history.reward[step % size],
                        inflation[i],
                        1.0,
                        1.0,
                    )
            if squares[i] >= 0.0:
                last = i
        if not is_second:
            scale = positive_median(squares) / MEDIAN_SQUARE
    for i in range(squares.size):
        step = (i + pops.first[best]) % size
        if (history.inflation[step] > 1.0) != (inflation[i] > 1.0):
            history.inflation[step] = inflation[i]
            changed = step if changed < 0 else changed
    if changed >= 0:
        refilter(state, t, changed)


@inner
def positive_median(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the median of the values that are not negative; 0 if there are none."""
    ordered, count = np.sort(values), 0
    while count < ordered.size and ordered[count] < 0.0:
        count += 1
    return ordered[(count + ordered.size) // 2] if count < ordered.size else 0.0
