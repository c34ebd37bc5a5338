"""The relevance of the context's numbers in each member of AdaptiveLARL."""

import math

import numpy as np

from larl._core.compile import inner
from larl.policies._relevance import block_log_ratio, log_ratio, relevance
from larl.policies.adaptive_larl.ensemble import PRIOR_ROWS, Ensemble, index_row, noise_variance


@inner
def set_relevance(state: Ensemble, member: int) -> None:
    """Set the relevance of each number of the context: arms of an untied member have separate regressions."""
    arms, variance = state.arms, noise_variance(state, member)
    if state.contexts == 0 or not variance > 0.0:
        return
    degrees, cov, mean = PRIOR_ROWS + state.rows[state.order[member]], np.empty((arms, arms)), np.empty(arms)
    penalty = state.penalties[state.penalty_row[member], 2]
    slot = member - state.rows.size * state.penalties.shape[0]
    for i in range(state.contexts):
        if state.sign_pattern[member] == 0:
            square, log_det = 0.0, 0.0  # the arms have the same noise
            for arm in range(arms):
                own, index = member * arms + arm, state.context_index[0, i]
                part, effect = state.untied.inverse[own, index, index], state.untied.theta[own, index]
                square += effect * effect / (part * variance)
                log_det += math.log(part)
            total = log_ratio(square, log_det, arms * math.log(2.0 / penalty), degrees)
        else:
            for arm in range(arms):
                index = state.context_index[index_row(state, member, arm), i]
                mean[arm] = state.tied.theta[slot, index] / math.sqrt(variance)
                for other in range(arms):
                    cov[arm, other] = state.tied.inverse[slot, index, state.context_index[1 + other, i]]
            prior = math.log(1.0 + arms) - arms * math.log(penalty)
            total = block_log_ratio(cov, mean, arms, prior, degrees)
        state.relevance[member, i] = relevance(total)
