"""Restarts: dropped populations try again on the newest rewards, in case the parameters have changed."""

import math

from larl._core.compile import inner
from larl.policies.auto.layout import BINARY, CONTINUOUS, field_offsets
from larl.policies.auto.populations import begin_population, best_population, blocks_of, model_of
from larl.policies.auto.soa import broadcast, exp, load, sum_lanes
from larl.policies.auto.state import LOG_NO_WEIGHT, SMCState

RESTART_EVERY = 30  # steps
LOOK_BACK = 15  # steps that a restarted population learns from at once
RESTARTS = 2  # populations that are restarted together
RESTART_LOG_SHARE = math.log(0.01 / RESTARTS)  # evidence of a restarted population relative to that of all
# Share of equal rewards, among those that a restarted population learns from, above which none is restarted. Densities
# of equal rewards have no limit: a model with hardly any noise would replace all others, and then fail.
MAX_EQUAL_SHARE = 0.5
PRIOR_ERRORS = 2.0  # number of prediction errors that the prior of σ² of a restarted population is worth


@inner
def shock_variance(state: SMCState) -> float:
    """Return the posterior mean of σ² in the best population; 0 without one."""
    pops, best = state.populations, best_population(state)
    if best < 0:
        return 0.0
    fields, total = field_offsets(model_of(state, best)), broadcast(0.0)
    x = blocks_of(state, best, fields)
    for row in range(0, x.shape[0], fields.end):
        weight = exp(load(x, row + fields.log_weight) - broadcast(pops.evidence[best]))
        total += weight * load(x, row + fields.squared_error)
    return sum_lanes(total) / max(pops.seen[best], 1.0)


@inner
def largest_equal_share(state: SMCState, start: int, end: int) -> float:
    """Return the share of the most frequent reward among those of steps `start` … `end` − 1; there is at least one."""
    history, most, count = state.history, 0, 0
    for step in range(start, end):
        i, equal = step % history.arm.size, 0
        for other in range(start, end):
            j = other % history.arm.size
            equal += history.arm[j] >= 0 and history.reward[j] == history.reward[i]
        if history.arm[i] >= 0:
            most, count = max(most, equal), count + 1
    return most / count


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
    if state.rewards[0] == CONTINUOUS and largest_equal_share(state, start, t) > MAX_EQUAL_SHARE:
        return
    for _ in range(pops.order.size):
        population = state.next_restart[0]
        if restarted < RESTARTS:
            state.next_restart[0] = (population + 1) % pops.order.size
            is_in_prior = state.priors.log_weight[state.rewards[0], population] > LOG_NO_WEIGHT
            if not pops.alive[population] and is_in_prior and not state.priors.is_permanent[population]:
                restarted += 1
                # The first continuous reward only sets the offset, so its density is that of all populations.
                last = start if state.rewards[0] == CONTINUOUS else start - 1
                evidence = history.evidence[last % history.arm.size] + RESTART_LOG_SHARE
                begin_population(state, population, start, evidence, seen, square)
