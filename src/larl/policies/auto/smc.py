"""Sequential Monte Carlo over models and parameters: one update per reward, with bounded work and memory."""

import math

from larl._core.compile import inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.moves import (
    LOG_NO_WEIGHT,
    coordinate_count,
    effective_share,
    move,
    next_bits,
    reweight,
    systematic_resample,
)
from larl.policies.auto.particle_kalman import filter_step, time_update
from larl.policies.auto.proposal import GaussianPrior, fit_proposal, proposal_to_prior
from larl.policies.auto.recovery import largest_reward, model_kind, recover, restart
from larl.policies.auto.soa import LANES
from larl.policies.auto.state import MOVES_PER_RESAMPLE, SMCState

TEMPER_BELOW = 0.25  # effective share of particles below which a reward's likelihood is applied in several parts
RESAMPLE_BELOW = 0.5  # effective share of particles below which a population is resampled and moved
TARGET_ACCEPTANCE = 0.35  # acceptance rate that the step size is adapted to
PRUNE_GAP = 7.0  # a population whose log evidence is this far below the best one is dropped
PRUNE_AFTER = 20  # steps before the first population can be dropped
REPLAY_BUDGET = 1e6  # covariance entries that the moves of one step may replay: a few milliseconds


@inner
def smc_update(state: SMCState, arm: int, reward: float) -> None:
    """Update all populations with the reward of this step; time advances by one."""
    data, owner, pops, history, fields = state.data, state.owner, state.populations, state.history, state.fields
    t, size = state.time[0], history.arm.size
    if t == 0:
        state.offset[0] = reward
    history.arm[t % size], history.reward[t % size] = arm, reward - state.offset[0]
    largest = largest_reward(history, t)
    state.time[0] += 1
    for block in range(owner.size):
        kind, value = model_kind(pops, owner[block]), history.reward[t % size]
        filter_step(data[block], fields, kind, t=t, arm=arm, reward=value, seen=state.seen[0], largest=largest)
    state.seen[0] += 1
    if recover(state, largest):
        restart(state)
        return
    budget, best = REPLAY_BUDGET, -1
    for population in range(pops.order.size):
        if pops.alive[population]:
            budget = tempered_reweight(state, population, budget)
            if best < 0 or pops.evidence[population] > pops.evidence[best]:
                best = population
    if t >= PRUNE_AFTER:
        for population in range(pops.order.size):
            if pops.alive[population] and pops.evidence[population] < pops.evidence[best] - PRUNE_GAP:
                pops.alive[population] = False
                reassign(state, population, best)
    for population in range(pops.order.size):
        if pops.alive[population]:
            budget = make_moves(state, population, 1.0, budget)
    if state.time[0] % state.memory == 0:
        roll_window(state)


@inner
def smc_update_missing(state: SMCState) -> None:
    """Advance every filter by a step without a reward; at least one reward came before."""
    t = state.time[0]
    state.history.arm[t % state.history.arm.size] = -1
    state.time[0] += 1
    for block in range(state.owner.size):
        time_update(state.data[block], state.fields, model_kind(state.populations, state.owner[block]), t + 1)
    if state.time[0] % state.memory == 0:
        roll_window(state)


@inner
def tempered_reweight(state: SMCState, population: int, budget: float) -> float:
    """Apply the last reward to the weights of a population; return the remaining replay budget.

    If one update would leave too few effective particles, the likelihood is applied in parts (likelihood tempering),
    with resampling and moves after each.
    """
    data, owner, fields, pops, fraction = state.data, state.owner, state.fields, state.populations, 0.0
    share, evidence = effective_share(data, owner, population, fields, 1.0)
    while share < TEMPER_BELOW and fraction < 0.98:
        low, high = 0.0, 1.0 - fraction
        for _ in range(10):
            middle = 0.5 * (low + high)
            share, _ = effective_share(data, owner, population, fields, middle)
            if share < RESAMPLE_BELOW:
                high = middle
            else:
                low = middle
        high = max(high, min(0.02, 1.0 - fraction))
        _, pops.evidence[population] = effective_share(data, owner, population, fields, high)
        reweight(data, owner, population, fields, high)
        fraction += high
        resample(state, population)
        budget = make_moves(state, population, fraction, budget)
        share, evidence = effective_share(data, owner, population, fields, 1.0 - fraction)
    reweight(data, owner, population, fields, 1.0 - fraction)
    pops.evidence[population] = evidence
    if share < RESAMPLE_BELOW:
        resample(state, population)
    return budget


@inner
def resample(state: SMCState, population: int) -> None:
    """Resample a population and schedule its moves."""
    evidence = state.populations.evidence[population]
    systematic_resample(
        state.data, state.owner, population, state.fields, evidence, bits_to_uniform(next_bits(state.draws))
    )
    for block in range(state.owner.size):
        if state.owner[block] == population:
            state.moves_due[block] = MOVES_PER_RESAMPLE


@inner
def make_moves(state: SMCState, population: int, fraction: float, budget: float) -> float:
    """Make the scheduled moves of a population while the replay budget lasts; return what remains of it."""
    owner, due, fields, pops, time = state.owner, state.moves_due, state.fields, state.populations, state.time[0]
    kind, prior = model_kind(pops, population), GaussianPrior(pops.mean[population], pops.precision[population])
    first, rounds, largest = state.window[0], 0, largest_reward(state.history, time - 1)
    for block in range(owner.size):
        if owner[block] == population:
            rounds = max(rounds, due[block])
    if rounds == 0 or budget <= 0.0:
        return budget
    size = coordinate_count(fields, kind)
    fit_proposal(state.data, owner, population, fields, size, pops.evidence[population], state.proposal)
    cost = (time - first) * (20.0 + (fields.arms + kind.p) ** 2)
    for _ in range(rounds):
        accepted, count = 0.0, 0
        for i in range(owner.size):
            block = (i + time) % owner.size
            if owner[block] == population and due[block] > 0 and budget > 0.0:
                budget -= cost
                due[block] -= 1
                share = move(
                    x=state.data[block],
                    candidate=state.candidate,
                    fields=fields,
                    kind=kind,
                    prior=prior,
                    proposal=state.proposal,
                    work=state.work,
                    step_size=pops.step_size[population],
                    fraction=fraction,
                    history=state.history,
                    first=first,
                    next_window=state.window[1],
                    time=time,
                    seen=state.seen[0],
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
def reassign(state: SMCState, population: int, best: int) -> None:
    """Move the blocks of a dropped population to another one, without weight; its next resampling overwrites them."""
    data, owner, fields, source = state.data, state.owner, state.fields, 0
    while owner[source] != best:
        source += 1
    for block in range(owner.size):
        if owner[block] == population:
            owner[block], state.moves_due[block] = best, 0
            for i in range(fields.end):
                for lane in range(LANES):
                    data[block, i, lane] = data[source, i, lane] if i != fields.log_weight else LOG_NO_WEIGHT


@inner
def roll_window(state: SMCState) -> None:
    """Stop replaying the rewards before the last `memory` steps; called every `memory` steps.

    Each particle keeps its filter at the start of the window, and a normal fit to the population at that time becomes
    its prior.
    """
    data, fields, pops, time, memory = state.data, state.fields, state.populations, state.time[0], state.memory
    height = fields.window_start - fields.mean
    for block in range(state.owner.size):
        for i in range(height):
            for lane in range(LANES):
                if time > memory:
                    data[block, fields.window_start + i, lane] = data[block, fields.next_window_start + i, lane]
                data[block, fields.next_window_start + i, lane] = data[block, fields.mean + i, lane]
    for population in range(pops.order.size):
        if pops.alive[population]:
            size = coordinate_count(fields, model_kind(pops, population))
            if time > memory:
                for i in range(size):
                    pops.mean[population, i] = pops.next_mean[population, i]
                    for j in range(size):
                        pops.precision[population, i, j] = pops.next_precision[population, i, j]
            fit_proposal(data, state.owner, population, fields, size, pops.evidence[population], state.proposal)
            proposal_to_prior(
                state.proposal, size, pops.next_mean[population], pops.next_precision[population], state.work
            )
    state.window[0], state.window[1] = (time - memory if time > memory else 0), time
