"""Outliers among continuous rewards: rewards whose prediction error is too large for the model's noise.

An outlier keeps its place in the history, with a noise variance that is inflated in proportion to its squared error, so
that it hardly changes a belief. All particles share the inflation. Without outliers, nothing changes. RUN_LENGTH large
errors in a row are not outliers: the rewards have moved, and the filters must follow. A run of two is too short: with
an outlier among 20 rewards, 400 rewards have one such pair on average. A reward that occurred before, exactly, is no
outlier either: counts and ratings repeat, and those that are rare for an arm matter most.
"""

from larl._core.compile import inner
from larl.policies.auto.layout import CONTINUOUS, field_offsets
from larl.policies.auto.particle_kalman import time_update
from larl.policies.auto.populations import blocks_of, expected_levels, model_of, total_evidence
from larl.policies.auto.prediction import newest_state, predicted_mean, predicted_variance
from larl.policies.auto.replay import occurs_elsewhere, replay_filter
from larl.policies.auto.resampling import effective_share
from larl.policies.auto.smc import RESAMPLE_BELOW, largest_reward, resample
from larl.policies.auto.soa import broadcast, exp, load, maximum, store, sum_lanes
from larl.policies.auto.state import SMCState

MIN_REWARDS = 8  # no reward is an outlier before there are this many
THRESHOLD, THRESHOLD_REWARDS = 16.0, 20.0  # squared standardised error of an outlier: THRESHOLD(1 + … / rewards)
MAX_INFLATION = 1e12
RUN_LENGTH = 3  # this many large errors in a row are not outliers


@inner
def squared_deviation(state: SMCState, arm: int, value: float) -> float:
    """Return the squared error of the prediction for a reward, divided by the variance that was predicted."""
    pops, t, evidence = state.populations, state.time[0], total_evidence(state)
    total, first, second = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    for population in range(pops.order.size):
        if pops.alive[population] and pops.next[population] == t:
            kind = model_of(state, population)
            fields, shock = field_offsets(kind), broadcast(1.0 / max(pops.seen[population], 1.0))
            x, z = blocks_of(state, population, fields), newest_state(kind, t - pops.born[population])
            for row in range(0, x.shape[0], fields.end):
                weight = exp(load(x, row + fields.log_weight) - broadcast(evidence))
                mean = predicted_mean(x, fields, kind, row, z, arm, state.context, 0)
                variance = predicted_variance(x, fields, kind, row, z, arm, state.context, 0)
                variance += load(x, row + fields.noise_variance + arm)
                variance = maximum(variance * load(x, row + fields.squared_error) * shock, broadcast(0.0))
                total += weight
                first += weight * mean
                second += weight * (mean * mean + variance)
    weights = sum_lanes(total)
    if not weights > 0.0:
        return 0.0
    expected = sum_lanes(first) / weights
    spread = sum_lanes(second) / weights - expected * expected
    return (value - expected) ** 2 / spread if spread > 0.0 else 0.0


@inner
def first_of_run(state: SMCState, t: int) -> int:
    """Return the first of the steps of the last RUN_LENGTH − 1 rewards before step t; −1 unless all are outliers."""
    history, step, count = state.history, t, 0
    while count < RUN_LENGTH - 1:
        step -= 1
        i = step % history.arm.size
        if step < max(t - history.arm.size, 0) or (history.arm[i] >= 0 and not history.inflation[i] > 1.0):
            return -1
        count += history.arm[i] >= 0
    return step


@inner
def mark_outlier(state: SMCState, arm: int, value: float) -> float:
    """Return the inflation of the noise of a new reward; if it ends a run of large errors, none is an outlier."""
    if state.rewards[0] != CONTINUOUS or state.seen[0] < MIN_REWARDS:
        return 1.0
    squared = squared_deviation(state, arm, value)
    if not squared > THRESHOLD * (1.0 + THRESHOLD_REWARDS / state.seen[0]):
        return 1.0
    t, size = state.time[0], state.history.arm.size
    if occurs_elsewhere(state.history, min(t, size), value, -1):
        return 1.0
    first = first_of_run(state, t)
    if first >= 0:
        for step in range(first, t):
            state.history.inflation[step % size] = 1.0
        refilter(state, t - 1, first % size)
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
                store(block, fields.log_weight, load(block, fields.log_weight) - load(block, fields.log_lik))
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
                    expected_level=expected_levels(state, population),
                )
                for step in range(end, t + 1):
                    time_update(block, fields, kind, step + 1 - pops.born[population])
                store(block, fields.log_weight, load(block, fields.log_weight) + load(block, fields.log_lik))
            share, pops.evidence[population] = effective_share(x, fields, 0.0)
            if share < RESAMPLE_BELOW:
                resample(state, population, x, fields)
    gain = total_evidence(state) - before
    for i in range((t - changed) % size + 1):
        state.history.evidence[(changed + i) % size] += gain
