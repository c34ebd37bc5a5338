"""The lags of AdaptiveLARL's members: past steps, the members' centres, and the values of the next step."""

from larl._core.compile import assign, inline, inner
from larl.policies._linalg.ridge import Ridge
from larl.policies.adaptive_larl.ensemble import Ensemble, coefficients, index_row
from larl.policies.adaptive_larl.relevance import set_relevance


@inline
def shift_targets(state: Ensemble, member: int, ridge: Ridge, slot: int, index: int, size: int, by: float) -> None:
    """Subtract `by` from y in every row with a one at `index`, an intercept: θ ← θ − by(e − λV⁻¹e)."""
    inverse, theta = ridge.inverse, ridge.theta
    penalty = state.penalties[state.penalty_row[member], 1]
    weighted = by * penalty
    state.loss[member] += weighted * (by - 2.0 * theta[slot, index] - weighted * inverse[slot, index, index])
    theta[slot, index] -= by
    for j in range(size):
        theta[slot, j] += weighted * inverse[slot, index, j]


@inline
def move_centre(state: Ensemble, member: int) -> None:
    """Update c, and with it the y of past rows (not their contexts)."""
    centre = state.centre[member, 1] / state.centre[member, 2]
    by, (size, _) = centre - state.centre[member, 0], coefficients(state, member)
    untied = state.rows.size * state.penalties.shape[0]
    for arm in range(state.arms):
        f = state.sign[state.sign_pattern[member], arm] * state.arm_scale[arm]
        if member < untied:
            shift_targets(state, member, state.untied, member * state.arms + arm, 0, size, f * by)
        else:
            shift_targets(state, member, state.tied, member - untied, arm, size, f * by)
    state.centre[member, 0] = centre


@inline
def push_lag(state: Ensemble, arm: int, reward: float) -> None:
    """Insert a step as the latest lag; arm −1 if its reward is missing."""
    index, p = state.context_index[0], state.contexts
    for j in range(state.past_reward.size - 1, 0, -1):
        index[p + j], state.past_arm[j] = index[p + j - 1] + state.arms, state.past_arm[j - 1]
        state.past_reward[j] = state.past_reward[j - 1]
        assign(state.past_context[j], state.past_context[j - 1])
    if state.past_reward.size > 0:
        index[p], state.past_arm[0], state.past_reward[0] = 1 + p + max(arm, 0), arm, reward
        for i in range(p):
            state.past_context[0, i] = state.context[i]


@inline
def context_effect(state: Ensemble, member: int, arm: int, lag: int) -> float:
    """Return the effect on y of the context of a lag, at which `arm` was played."""
    kind, effect = index_row(state, member, arm), 0.0
    ridge, slot = state.tied, member - state.rows.size * state.penalties.shape[0]
    if kind == 0:
        ridge, slot = state.untied, member * state.arms + arm
    for i in range(state.contexts):
        weight = state.relevance[member, i] * state.past_context[lag, i]
        effect += ridge.theta[slot, state.context_index[kind, i]] * weight
    return effect


@inner
def prepare_contexts(state: Ensemble) -> None:
    """Compute centres and contexts of the next step. A member that becomes active starts with the centre of order 0."""
    time = state.reward_moments[state.arms, 0]
    for member in range(state.log_weight.size):
        s = state.order[member]
        if s == time and s > 0:
            state.centre[member, 1], state.centre[member, 2] = state.centre[member - s, 0], 1.0
        if s <= time:
            move_centre(state, member)
            set_relevance(state, member)
            for j in range(s):
                arm = state.past_arm[j]
                f = state.sign[state.sign_pattern[member], arm] * state.arm_scale[arm] if arm >= 0 else 0.0
                effect = context_effect(state, member, arm, j) if arm >= 0 else 0.0
                state.value[member, state.contexts + j] = f * (state.past_reward[j] - state.centre[member, 0]) - effect
