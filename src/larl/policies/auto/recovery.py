"""Replace particles that contain nan or infinity.

The bounds in moves.py and particle_kalman.py prevent such numbers in every known case. If one appears all the same, or
is read from a file, the particle is replaced by a copy of another one. A population without a finite particle is drawn
again from its prior and replays the rewards. If that fails too, all populations restart.
"""

import math

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.layout import FieldOffsets, ModelKind
from larl.policies.auto.moves import LOG_NO_WEIGHT, QUANTILES, DrawCounter, coordinate_count, next_bits, to_parameters
from larl.policies.auto.particle_kalman import RewardHistory, fill, filter_step, replay_filter
from larl.policies.auto.soa import LANES, Floats, add_nan_if_nonfinite, copy
from larl.policies.auto.state import Populations, SMCState


@inline
def model_kind(pops: Populations, population: int) -> ModelKind:
    """Return the model of a population."""
    return ModelKind(pops.order[population], pops.form[population])


@inner
def largest_reward(history: RewardHistory, t: int) -> float:
    """Return the largest |reward − first reward| in the history at step t."""
    largest = 0.0
    for i in range(min(t + 1, history.arm.size)):
        if history.arm[i] >= 0:
            largest = max(largest, abs(history.reward[i]))
    return largest


@inner
def replace_nonfinite(state: SMCState, population: int) -> bool:
    """Replace non-finite particles of a population by copies without weight; return False if no particle is finite."""
    data, owner, fields, source, source_lane, best = state.data, state.owner, state.fields, -1, 0, -math.inf
    for block in range(owner.size):
        if owner[block] == population:
            mark_nonfinite(data[block], fields)
            for lane in range(LANES):
                if data[block, fields.tmp1, lane] == 0.0 and data[block, fields.log_weight, lane] > best:
                    source, source_lane, best = block, lane, data[block, fields.log_weight, lane]
    if source < 0:
        return False
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                if data[block, fields.tmp1, lane] != 0.0:
                    for i in range(fields.end):
                        data[block, i, lane] = data[source, i, source_lane]
                    data[block, fields.log_weight, lane] = LOG_NO_WEIGHT
    return True


@inline
def mark_nonfinite(x: Floats, fields: FieldOffsets) -> None:
    """Set row `tmp1` to 0 for finite particles and to nan for others."""
    fill(x, fields.tmp1, 0.0)
    for i in range(fields.mean, fields.window_start):
        add_nan_if_nonfinite(x, fields.tmp1, i)
    for i in range(fields.log_lik_before, fields.log_weight + 1):
        add_nan_if_nonfinite(x, fields.tmp1, i)


@inner
def draw_from_prior(
    x: Floats, fields: FieldOffsets, kind: ModelKind, first: int, mean: Floats, precision: Floats, draws: DrawCounter
) -> None:
    """Draw the particles of a block from a normal prior, without its correlations.

    The beliefs at the start of the window stay, unless the window starts at step 0.
    """
    for i in range(fields.end):
        if first == 0 or not fields.window_start <= i < fields.next_window_start:
            fill(x, i, 0.0)
    for lane in range(LANES):
        for i in range(coordinate_count(fields, kind)):
            sd = 1.0 / math.sqrt(precision[i, i])
            x[fields.theta + i, lane] = mean[i] + sd * QUANTILES[np.int64(next_bits(draws) & np.uint64(4095))]
        for arm in range(fields.arms):
            x[fields.sign + arm, lane] = 1.0 if bits_to_uniform(next_bits(draws)) < 0.5 else -1.0
    to_parameters(x, fields, kind)


@inline
def equalise_weights(state: SMCState, population: int, evidence: float) -> None:
    """Give all particles of a population the same weight, with this log sum."""
    count = 0
    for block in range(state.owner.size):
        count += LANES if state.owner[block] == population else 0
    for block in range(state.owner.size):
        if state.owner[block] == population:
            fill(state.data[block], state.fields.log_weight, evidence - math.log(count))
            state.moves_due[block] = 0
    state.populations.evidence[population] = evidence


@inner
def rebuild(state: SMCState, population: int, largest: float) -> None:
    """Draw the particles of a population from its prior and replay the rewards."""
    pops, fields, kind = state.populations, state.fields, model_kind(state.populations, population)
    for block in range(state.owner.size):
        if state.owner[block] == population:
            x, window, time, seen = state.data[block], state.window, state.time[0], state.seen[0]
            draw_from_prior(x, fields, kind, window[0], pops.mean[population], pops.precision[population], state.draws)
            replay_filter(
                x=x,
                fields=fields,
                kind=kind,
                history=state.history,
                first=window[0],
                next_window=window[1],
                end=time,
                seen=seen,
                largest=largest,
            )
    equalise_weights(state, population, pops.evidence[population] if math.isfinite(pops.evidence[population]) else 0.0)


@inner
def restart(state: SMCState) -> None:
    """Restart all populations, with the last reward as the first one."""
    pops, history, fields, last = state.populations, state.history, state.fields, state.time[0] - 1
    arm, reward = history.arm[last % history.arm.size], history.reward[last % history.arm.size]
    state.offset[0] += reward
    for i in range(history.arm.size):
        history.arm[i], history.reward[i] = -1, 0.0
    history.arm[0] = arm
    state.time[0], state.seen[0], state.window[0], state.window[1] = 1, 1, 0, state.memory
    for population in range(pops.order.size):
        kind, size = model_kind(pops, population), coordinate_count(fields, model_kind(pops, population))
        for i in range(size):
            pops.next_mean[population, i] = pops.mean[population, i]
            for j in range(size):
                pops.next_precision[population, i, j] = pops.precision[population, i, j]
        for block in range(state.owner.size):
            if state.owner[block] == population:
                x = state.data[block]
                draw_from_prior(x, fields, kind, 0, pops.mean[population], pops.precision[population], state.draws)
                filter_step(x, fields, kind, t=0, arm=arm, reward=0.0, seen=0, largest=0.0)
                copy(x, fields.log_lik_before, fields.log_lik)
        equalise_weights(state, population, 0.0)


@inner
def recover(state: SMCState, largest: float) -> bool:
    """Replace non-finite particles and rebuild populations without a finite one; return whether that failed."""
    pops, failed = state.populations, False
    for population in range(pops.order.size):
        if pops.alive[population] and not replace_nonfinite(state, population):
            rebuild(state, population, largest)
            failed = not replace_nonfinite(state, population) or failed
    return failed
