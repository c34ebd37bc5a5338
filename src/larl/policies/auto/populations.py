"""One population of particles of the same model: where its blocks are, its start, and the end of its window."""

import math

from larl._core.compile import inline, inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.belief import fill
from larl.policies.auto.layout import STATIONARY_AR, FieldOffsets, ModelKind, coordinate_count, field_offsets
from larl.policies.auto.moves import draw_normals, next_bits
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.particle_kalman import time_update
from larl.policies.auto.proposal import empty_proposal, fit_proposal, proposal_to_prior
from larl.policies.auto.soa import LANES, Floats, broadcast, load, store
from larl.policies.auto.state import LOG_NO_WEIGHT, SMCState


@inline
def model_of(state: SMCState, population: int) -> ModelKind:
    """Return the model of a population."""
    pops = state.populations
    contexts = state.context.shape[1]
    return ModelKind(state.arms, pops.order[population], pops.form[population], state.rewards[0], contexts)


@inline
def blocks_of(state: SMCState, population: int, fields: FieldOffsets) -> Floats:
    """Return the rows of a population's blocks."""
    top = state.populations.top[population]
    return state.data[top : top + fields.end * state.populations.blocks[population]]


@inline
def expected_levels(state: SMCState, population: int) -> Floats:
    """Return the prior mean of the arms' levels in a population."""
    return state.priors.level[state.rewards[0], population]


@inner
def best_population(state: SMCState) -> int:
    """Return the living population with the largest evidence; −1 without one."""
    pops, best = state.populations, -1
    for population in range(pops.order.size):
        if pops.alive[population] and (best < 0 or pops.evidence[population] > pops.evidence[best]):
            best = population
    return best


@inner
def total_evidence(state: SMCState) -> float:
    """Return the logarithm of the evidence of all living populations."""
    pops, top, total = state.populations, -math.inf, 0.0
    for population in range(pops.order.size):
        if pops.alive[population]:
            top = max(top, pops.evidence[population])
    for population in range(pops.order.size):
        if pops.alive[population]:
            total += math.exp(pops.evidence[population] - top)
    return top + math.log(total) if total > 0.0 else 0.0


@inner
def begin_population(state: SMCState, population: int, t: int, evidence: float, seen: float, square: float) -> None:
    """Draw the particles of a population from its prior; the reward of step t is the first that it will learn from."""
    pops, model = state.populations, state.rewards[0]
    kind, priors = model_of(state, population), state.priors
    fields, size = field_offsets(kind), coordinate_count(kind)
    x = blocks_of(state, population, fields)
    factor, odds = priors.factor[model, population], priors.sign_log_odds[model, population]
    pops.alive[population], pops.moves_due[population] = True, 0
    pops.born[population], pops.first[population], pops.next[population] = t, t, t
    pops.seen[population], pops.prior_square[population] = seen, square
    pops.evidence[population], pops.step_size[population] = evidence, 0.5
    for i in range(size):
        pops.mean[population, i] = priors.mean[model, population, i]
        for j in range(size):
            pops.precision[population, i, j] = priors.precision[model, population, i, j]
    for row in range(0, x.shape[0], fields.end):
        for i in range(fields.end):
            fill(x, row + i, 0.0)
        for lane in range(LANES):
            draw_normals(x[row + fields.theta :], size, lane, state.draws)
            for i in range(size - 1, -1, -1):  # from the last: only earlier normals are needed again
                value = pops.mean[population, i] + factor[i, i] * x[row + fields.theta + i, lane]
                for j in range(i):
                    value += factor[i, j] * x[row + fields.theta + j, lane]
                x[row + fields.theta + i, lane] = value
            for arm in range(state.arms):
                x[row + fields.sign + arm, lane] = 1.0 if bits_to_uniform(next_bits(state.draws)) < 0.5 else -1.0
                if arm > 0 and kind.form == STATIONARY_AR:
                    same = 1.0 / (1.0 + math.exp(-odds[arm]))
                    is_same = bits_to_uniform(next_bits(state.draws)) < same
                    x[row + fields.sign + arm, lane] = x[row + fields.sign, lane] * (1.0 if is_same else -1.0)
        fill(x, row + fields.log_weight, evidence - math.log(x.shape[0] // fields.end * LANES))
        fill(x, row + fields.squared_error, square)
        to_parameters(x[row : row + fields.end], fields, kind)


@inner
def begin_all(state: SMCState, t: int) -> None:
    """Draw all populations from their priors; they will learn from step t on."""
    model, priors = state.rewards[0], state.priors
    for population in range(state.populations.order.size):
        weight, errors = priors.log_weight[model, population], priors.errors[model, population]
        state.populations.alive[population] = False
        if weight > LOG_NO_WEIGHT:
            begin_population(state, population, t, weight, errors, errors * priors.shock_variance[model, population])


@inner
def replace_nonfinite(x: Floats, fields: FieldOffsets) -> bool:
    """Replace non-finite particles of a population by copies without weight; return False if no particle is finite."""
    source, source_lane, best = -1, 0, -math.inf
    for row in range(0, x.shape[0], fields.end):
        mark = row + fields.tmp1
        total = broadcast(0.0)  # becomes nan where a number is not finite
        for i in range(fields.mean, fields.window_start):
            total += load(x, row + i) - load(x, row + i)
        for i in range(fields.log_lik_before, fields.log_weight + 1):
            total += load(x, row + i) - load(x, row + i)
        store(x, mark, total)
        for lane in range(LANES):
            if x[mark, lane] == 0.0 and x[row + fields.log_weight, lane] > best:
                source, source_lane, best = row, lane, x[row + fields.log_weight, lane]
    if source < 0:
        return False
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            if x[row + fields.tmp1, lane] != 0.0:
                for i in range(fields.end):
                    x[row + i, lane] = x[source + i, source_lane]
                x[row + fields.log_weight, lane] = LOG_NO_WEIGHT
    return True


@inner
def roll_window(state: SMCState, population: int, t: int) -> None:
    """Stop replaying the rewards before step t.

    Each particle keeps its belief, and a normal fit to the population becomes its prior.
    """
    pops = state.populations
    kind = model_of(state, population)
    fields, size = field_offsets(kind), coordinate_count(kind)
    x, height = blocks_of(state, population, fields), fields.window_start - fields.mean
    for row in range(0, x.shape[0], fields.end):
        for i in range(height):
            store(x, row + fields.window_start + i, load(x, row + fields.mean + i))
    proposal = empty_proposal(size)
    fit_proposal(x, fields.end, fields.theta, fields.log_weight, size, pops.evidence[population], proposal)
    proposal_to_prior(proposal, size, pops.mean[population], pops.precision[population])
    pops.first[population] = t


@inner
def advance_population(state: SMCState, population: int, t: int) -> None:
    """Advance the filters of a population from step t to step t + 1 without a reward."""
    kind = model_of(state, population)
    fields = field_offsets(kind)
    x = blocks_of(state, population, fields)
    for row in range(0, x.shape[0], fields.end):
        time_update(x[row : row + fields.end], fields, kind, t + 1 - state.populations.born[population])
