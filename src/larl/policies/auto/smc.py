"""Sequential Monte Carlo over models and parameters: one update per reward, with bounded work and memory."""

import math

from larl._core.compile import inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.layout import CONTINUOUS, FieldOffsets, coordinate_count, field_offsets
from larl.policies.auto.moves import move, next_bits
from larl.policies.auto.populations import (
    advance_population,
    begin_all,
    begin_population,
    best_population,
    blocks_of,
    expected_levels,
    model_of,
    replace_nonfinite,
    roll_window,
    total_evidence,
)
from larl.policies.auto.proposal import GaussianPrior, empty_proposal, fit_proposal
from larl.policies.auto.replay import RewardHistory, filter_step
from larl.policies.auto.resampling import effective_share, reweight, systematic_resample
from larl.policies.auto.restarts import RESTART_EVERY, restart_populations
from larl.policies.auto.soa import Floats, aligned_rows, load, store
from larl.policies.auto.state import MAX_MOVES, MIN_MOVES, SMCState

TEMPER_BELOW = 0.25  # effective share of particles below which a reward's likelihood is applied in several parts
RESAMPLE_BELOW = 0.5  # effective share of particles below which a population is resampled and moved
TARGET_ACCEPTANCE = 0.35  # acceptance rate that the step size is adapted to
PRUNE_GAP = 7.0  # a population whose log evidence is this far below the best one is dropped
PRUNE_AFTER = 20  # steps before a population can be dropped
REPLAY_BUDGET = 1e6  # covariance entries that the moves of one step may replay: a few milliseconds
MOVED_STEPS = 400  # steps that the moves of a particle replay together, within MIN_MOVES and MAX_MOVES


@inner
def largest_reward(history: RewardHistory, end: int) -> float:
    """Return the largest |reward − first reward| in the history before step `end`."""
    largest = 0.0
    for i in range(min(end, history.arm.size)):
        if history.arm[i] >= 0:
            largest = max(largest, abs(history.reward[i]))
    return largest


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
            expected_level=expected_levels(state, population),
            contexts=history.context,
            at=i,
        )
        if is_birth and kind.rewards == CONTINUOUS:
            store(block, fields.log_lik_before, load(block, fields.log_lik))
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
    kind, odds = model_of(state, population), state.priors.sign_log_odds[state.rewards[0], population]
    prior, level = GaussianPrior(pops.mean[population], pops.precision[population]), expected_levels(state, population)
    fields, size = field_offsets(kind), coordinate_count(kind)
    x, first = blocks_of(state, population, fields), pops.first[population]
    proposal, candidate, rows = empty_proposal(size), aligned_rows(fields.end), aligned_rows(2 * size)
    fit_proposal(x, fields.end, fields.theta, fields.log_weight, size, pops.evidence[population], proposal)
    cost = pops.blocks[population] * (t + 1 - first) * (20.0 + (kind.arms * (1 + kind.contexts) + kind.p) ** 2)
    while pops.moves_due[population] > 0 and budget > 0.0:
        budget -= cost
        pops.moves_due[population] -= 1
        accepted, count = 0.0, 0
        for row in range(0, x.shape[0], fields.end):
            share = move(
                x=x[row : row + fields.end],
                candidate=candidate,
                fields=fields,
                kind=kind,
                prior=prior,
                proposal=proposal,
                rows=rows,
                step_size=pops.step_size[population],
                fraction=fraction,
                history=state.history,
                born=pops.born[population],
                first=first,
                end=t + 1,
                seen=pops.seen[population],
                prior_square=pops.prior_square[population],
                largest=largest,
                expected_level=level,
                sign_log_odds=odds,
                draws=state.draws,
            )
            if share >= 0.0:
                accepted, count = accepted + share, count + 1
        if count > 0:
            step_size = pops.step_size[population] * math.exp(0.5 * (accepted / count - TARGET_ACCEPTANCE))
            pops.step_size[population] = min(max(step_size, 0.05), 0.98)
    return budget


@inner
def learn_steps(state: SMCState, population: int, t: int, largest: float, budget: float) -> float:
    """Update a population with the steps up to t that it has not learnt from; return the remaining replay budget."""
    pops, history = state.populations, state.history
    while pops.alive[population] and pops.next[population] <= t:
        step = pops.next[population]
        pops.next[population] += 1
        if history.arm[step % history.arm.size] < 0 and step == pops.born[population]:
            pops.born[population], pops.first[population] = step + 1, step + 1  # it starts at a reward
        elif history.arm[step % history.arm.size] >= 0:
            budget = update_population(state, population, step, largest, budget)
        else:
            advance_population(state, population, step)
    return budget


@inner
def smc_step(state: SMCState, t: int) -> None:
    """Update all living populations with the history up to step t; a restarted one learns from several steps."""
    pops, history = state.populations, state.history
    largest, budget = largest_reward(history, t + 1), REPLAY_BUDGET
    if t % RESTART_EVERY == 0 and t >= state.relearnt[0] + RESTART_EVERY:
        restart_populations(state, t)
    for population in range(pops.order.size):
        budget = learn_steps(state, population, t, largest, budget)
    best = best_population(state)
    for population in range(pops.order.size):
        if pops.alive[population]:
            gap = pops.evidence[best] - pops.evidence[population]
            is_old = t - pops.born[population] >= PRUNE_AFTER
            if gap > PRUNE_GAP and is_old and not state.priors.is_permanent[population]:
                pops.alive[population] = False
            elif t + 1 - pops.first[population] >= history.arm.size:
                roll_window(state, population, t + 1)
    history.evidence[t % history.arm.size] = total_evidence(state)
    if best < 0:
        begin_all(state, t + 1)
