"""Sequential Monte Carlo over models and parameters: one update per reward, with bounded work and memory."""

import math

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.layout import BINARY, CONTINUOUS, FieldOffsets, ModelKind, coordinate_count, field_offsets
from larl.policies.auto.moves import (
    QUANTILES,
    effective_share,
    move,
    next_bits,
    reweight,
    systematic_resample,
)
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.particle_kalman import RewardHistory, fill, filter_step, time_update
from larl.policies.auto.proposal import GaussianPrior, fit_proposal, proposal_to_prior
from larl.policies.auto.soa import LANES, Floats, add_nan_if_nonfinite, copy
from larl.policies.auto.state import MAX_MOVES, MIN_MOVES, SMCState

TEMPER_BELOW = 0.25  # effective share of particles below which a reward's likelihood is applied in several parts
RESAMPLE_BELOW = 0.5  # effective share of particles below which a population is resampled and moved
TARGET_ACCEPTANCE = 0.35  # acceptance rate that the step size is adapted to
PRUNE_GAP = 7.0  # a population whose log evidence is this far below the best one is dropped
PRUNE_AFTER = 20  # steps before a population can be dropped
REPLAY_BUDGET = 1e6  # covariance entries that the moves of one step may replay: a few milliseconds
RESTART_EVERY = 30  # steps
LOOK_BACK = 15  # steps that a restarted population learns from at once
RESTARTS = 2  # populations that are restarted together
RESTART_LOG_SHARE = math.log(0.01 / RESTARTS)  # evidence of a restarted population relative to that of all
PRIOR_ERRORS = 2.0  # number of prediction errors that the prior of σ² of a restarted population is worth
MOVED_STEPS = 400  # steps that the moves of a particle replay together, within MIN_MOVES and MAX_MOVES
LOG_NO_WEIGHT = -1e300  # log weight of a particle without weight


@inline
def model_of(state: SMCState, population: int) -> ModelKind:
    """Return the model of a population."""
    pops = state.populations
    return ModelKind(state.arms, pops.order[population], pops.form[population], state.rewards[0])


@inline
def blocks_of(state: SMCState, population: int, fields: FieldOffsets) -> Floats:
    """Return the rows of a population's blocks."""
    top = state.populations.top[population]
    return state.data[top : top + fields.end * state.populations.blocks[population]]


@inner
def largest_reward(history: RewardHistory, end: int) -> float:
    """Return the largest |reward − first reward| in the history before step `end`."""
    largest = 0.0
    for i in range(min(end, history.arm.size)):
        if history.arm[i] >= 0:
            largest = max(largest, abs(history.reward[i]))
    return largest


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
    kind = model_of(state, population)
    fields, size = field_offsets(kind), coordinate_count(kind)
    x = blocks_of(state, population, fields)
    pops.alive[population], pops.moves_due[population] = True, 0
    pops.born[population], pops.first[population], pops.next[population] = t, t, t
    pops.seen[population], pops.prior_square[population] = seen, square
    pops.evidence[population], pops.step_size[population] = evidence, 0.5
    for i in range(size):
        pops.mean[population, i] = pops.start_mean[model, population, i]
        for j in range(size):
            pops.precision[population, i, j] = 0.0
        pops.precision[population, i, i] = pops.start_sd[model, population, i] ** -2.0
    for row in range(0, x.shape[0], fields.end):
        for i in range(fields.end):
            fill(x, row + i, 0.0)
        for lane in range(LANES):
            bits, left = np.uint64(0), 0
            for i in range(size):
                if left == 0:
                    bits, left = next_bits(state.draws), 5
                sd = pops.start_sd[model, population, i]
                x[row + fields.theta + i, lane] = (
                    pops.mean[population, i] + sd * QUANTILES[np.int64(bits & np.uint64(4095))]
                )
                bits, left = bits >> np.uint64(12), left - 1
            for arm in range(state.arms):
                x[row + fields.sign + arm, lane] = 1.0 if bits_to_uniform(next_bits(state.draws)) < 0.5 else -1.0
        fill(x, row + fields.log_weight, evidence - math.log(x.shape[0] // fields.end * LANES))
        fill(x, row + fields.squared_error, square)
        to_parameters(x[row : row + fields.end], fields, kind)


@inner
def replace_nonfinite(x: Floats, fields: FieldOffsets) -> bool:
    """Replace non-finite particles of a population by copies without weight; return False if no particle is finite."""
    source, source_lane, best = -1, 0, -math.inf
    for row in range(0, x.shape[0], fields.end):
        mark = row + fields.tmp1
        fill(x, mark, 0.0)
        for i in range(fields.mean, fields.window_start):
            add_nan_if_nonfinite(x, mark, row + i)
        for i in range(fields.log_lik_before, fields.log_weight + 1):
            add_nan_if_nonfinite(x, mark, row + i)
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
def update_population(state: SMCState, population: int, t: int, largest: float, budget: float) -> float:
    """Update a population with the reward of step t; return the remaining replay budget."""
    pops, history = state.populations, state.history
    kind = model_of(state, population)
    fields, i = field_offsets(kind), t % history.arm.size
    x, is_birth = blocks_of(state, population, fields), pops.born[population] == t
    if not is_birth:
        pops.seen[population] += 1.0
    for row in range(0, x.shape[0], fields.end):
        block = x[row : row + fields.end]
        filter_step(
            block,
            fields,
            kind,
            t=t - pops.born[population],
            arm=history.arm[i],
            reward=history.reward[i],
            inflation=history.inflation[i],
            seen=pops.seen[population],
            largest=largest,
        )
        if is_birth and kind.rewards == CONTINUOUS:
            copy(block, fields.log_lik_before, fields.log_lik)
    if not replace_nonfinite(x, fields):
        begin_population(state, population, t + 1, pops.evidence[population], 0.0, 0.0)
        pops.alive[population] = False
        return budget
    budget = tempered_reweight(state, population, t, largest, budget)
    return make_moves(state, population, t, 1.0, largest, budget)


@inner
def tempered_reweight(state: SMCState, population: int, t: int, largest: float, budget: float) -> float:
    """Apply the last reward to the weights of a population; return the remaining replay budget.

    If one update would leave too few effective particles, the likelihood is applied in parts (likelihood tempering),
    with resampling and moves after each.
    """
    pops, fraction = state.populations, 0.0
    fields = field_offsets(model_of(state, population))
    x = blocks_of(state, population, fields)
    share, evidence = effective_share(x, fields, 1.0)
    while share < TEMPER_BELOW and fraction < 0.98:
        low, high = 0.0, 1.0 - fraction
        for _ in range(10):
            middle = 0.5 * (low + high)
            share, _ = effective_share(x, fields, middle)
            if share < RESAMPLE_BELOW:
                high = middle
            else:
                low = middle
        high = max(high, min(0.02, 1.0 - fraction))
        _, pops.evidence[population] = effective_share(x, fields, high)
        reweight(x, fields, high)
        fraction += high
        resample(state, population, x, fields)
        budget = make_moves(state, population, t, fraction, largest, budget)
        share, evidence = effective_share(x, fields, 1.0 - fraction)
    reweight(x, fields, 1.0 - fraction)
    pops.evidence[population] = evidence
    if share < RESAMPLE_BELOW:
        resample(state, population, x, fields)
    return budget


@inner
def resample(state: SMCState, population: int, x: Floats, fields: FieldOffsets) -> None:
    """Resample a population and schedule its moves."""
    evidence = state.populations.evidence[population]
    systematic_resample(x, fields, evidence, bits_to_uniform(next_bits(state.draws)))
    length = state.populations.next[population] - state.populations.first[population]
    state.populations.moves_due[population] = max(MIN_MOVES, min(MAX_MOVES, MOVED_STEPS // max(length, 1)))


@inner
def make_moves(state: SMCState, population: int, t: int, fraction: float, largest: float, budget: float) -> float:
    """Make the scheduled moves of a population while the replay budget lasts; return what remains of it."""
    pops = state.populations
    if pops.moves_due[population] == 0 or budget <= 0.0:
        return budget
    kind, prior = model_of(state, population), GaussianPrior(pops.mean[population], pops.precision[population])
    fields, size = field_offsets(kind), coordinate_count(kind)
    x, first = blocks_of(state, population, fields), pops.first[population]
    fit_proposal(x, fields.end, fields.theta, fields.log_weight, size, pops.evidence[population], state.proposal)
    cost = pops.blocks[population] * (t + 1 - first) * (20.0 + (kind.arms + kind.p) ** 2)
    while pops.moves_due[population] > 0 and budget > 0.0:
        budget -= cost
        pops.moves_due[population] -= 1
        accepted, count = 0.0, 0
        for row in range(0, x.shape[0], fields.end):
            share = move(
                x=x[row : row + fields.end],
                candidate=state.candidate,
                fields=fields,
                kind=kind,
                prior=prior,
                proposal=state.proposal,
                work=state.work,
                step_size=pops.step_size[population],
                fraction=fraction,
                history=state.history,
                born=pops.born[population],
                first=first,
                end=t + 1,
                seen=pops.seen[population],
                prior_square=pops.prior_square[population],
                largest=largest,
                draws=state.draws,
            )
            if share >= 0.0:
                accepted, count = accepted + share, count + 1
        if count > 0:
            step_size = pops.step_size[population] * math.exp(0.5 * (accepted / count - TARGET_ACCEPTANCE))
            pops.step_size[population] = min(max(step_size, 0.05), 0.98)
    return budget


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
            copy(x, row + fields.window_start + i, row + fields.mean + i)
    fit_proposal(x, fields.end, fields.theta, fields.log_weight, size, pops.evidence[population], state.proposal)
    proposal_to_prior(state.proposal, size, pops.mean[population], pops.precision[population], state.work)
    pops.first[population] = t


@inner
def advance_population(state: SMCState, population: int, t: int) -> None:
    """Advance the filters of a population from step t to step t + 1 without a reward."""
    kind = model_of(state, population)
    fields = field_offsets(kind)
    x = blocks_of(state, population, fields)
    for row in range(0, x.shape[0], fields.end):
        time_update(x[row : row + fields.end], fields, kind, t + 1 - state.populations.born[population])


@inner
def smc_step(state: SMCState, t: int) -> None:
    """Update all living populations with the history up to step t; a restarted one learns from several steps."""
    pops, history, best = state.populations, state.history, -1
    largest, budget = largest_reward(history, t + 1), REPLAY_BUDGET
    if t % RESTART_EVERY == 0 and t >= state.relearnt[0] + RESTART_EVERY:
        restart_populations(state, t)
    for population in range(pops.order.size):
        while pops.alive[population] and pops.next[population] <= t:
            step = pops.next[population]
            pops.next[population] += 1
            if history.arm[step % history.arm.size] < 0 and step == pops.born[population]:
                pops.born[population], pops.first[population] = step + 1, step + 1  # it starts at a reward
            elif history.arm[step % history.arm.size] >= 0:
                budget = update_population(state, population, step, largest, budget)
            else:
                advance_population(state, population, step)
        if pops.alive[population] and (best < 0 or pops.evidence[population] > pops.evidence[best]):
            best = population
    for population in range(pops.order.size):
        if pops.alive[population]:
            gap = pops.evidence[best] - pops.evidence[population]
            if gap > PRUNE_GAP and t - pops.born[population] >= PRUNE_AFTER:
                pops.alive[population] = False
            elif t + 1 - pops.first[population] >= history.arm.size:
                roll_window(state, population, t + 1)
    history.evidence[t % history.arm.size] = total_evidence(state)
    if best < 0:
        begin_all(state, t + 1)


@inner
def begin_all(state: SMCState, t: int) -> None:
    """Draw all populations from their priors; they will learn from step t on."""
    for population in range(state.populations.order.size):
        begin_population(state, population, t, state.populations.start_weight[state.rewards[0], population], 0.0, 0.0)


@inner
def shock_variance(state: SMCState) -> float:
    """Return the posterior mean of σ² in the best population; 0 without one."""
    pops, best = state.populations, -1
    for population in range(pops.order.size):
        if pops.alive[population] and (best < 0 or pops.evidence[population] > pops.evidence[best]):
            best = population
    if best < 0:
        return 0.0
    fields, total = field_offsets(model_of(state, best)), 0.0
    x = blocks_of(state, best, fields)
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            weight = math.exp(x[row + fields.log_weight, lane] - pops.evidence[best])
            total += weight * x[row + fields.squared_error, lane]
    return total / max(pops.seen[best], 1.0)


@inner
def restart_populations(state: SMCState, t: int) -> None:
    """Restart dropped populations, as if the parameters had changed LOOK_BACK steps ago."""
    pops, history, start, restarted = state.populations, state.history, t - LOOK_BACK, 0
    while start < t and history.arm[start % history.arm.size] < 0:
        start += 1
    seen = 0.0 if state.rewards[0] == BINARY else PRIOR_ERRORS
    square = seen * shock_variance(state)
    if start == t or (state.rewards[0] == CONTINUOUS and not square > 0.0):
        return
    for _ in range(pops.order.size):
        population = state.next_restart[0]
        if restarted < RESTARTS:
            state.next_restart[0] = (population + 1) % pops.order.size
            if not pops.alive[population]:
                restarted += 1
                # The first continuous reward only sets the offset, so its density is that of all populations.
                last = start if state.rewards[0] == CONTINUOUS else start - 1
                evidence = history.evidence[last % history.arm.size] + RESTART_LOG_SHARE
                begin_population(state, population, start, evidence, seen, square)
