"""Learning from a reward: the observation model, outliers, and the update of all populations."""

from larl._core.compile import inline, inner
from larl.policies.auto.layout import BINARY, CONTINUOUS
from larl.policies.auto.outlier_review import REVIEW_GROWTH, review_outliers
from larl.policies.auto.outliers import MIN_REWARDS, mark_outlier
from larl.policies.auto.populations import begin_all
from larl.policies.auto.smc import smc_step
from larl.policies.auto.state import SMCState


@inner
def set_reward_model(state: SMCState, reward: float) -> bool:
    """Choose the observation model, given a new reward; return whether the history must be learnt again.

    Rewards are binary if all are 0 or 1, or if there are at least three and they have only two values.
    """
    values, offset, count = state.values, state.offset, state.rewards[2]
    if count == 0:
        values[0], values[1], count = reward, reward, 1
    elif count == 1 and reward != values[0]:
        values[0], values[1], count = min(values[0], reward), max(values[0], reward), 2
    elif count == 2 and reward != values[0] and reward != values[1]:
        count = 3
    state.rewards[2] = count
    is_unit = (values[0] == 0.0 or values[0] == 1.0) and (values[1] == 0.0 or values[1] == 1.0)
    is_binary = count < 3 and (is_unit or (count == 2 and state.seen[0] >= 2))
    model, zero, unit = CONTINUOUS, values[0], 1.0
    if state.rewards[1] == BINARY or (state.rewards[1] != CONTINUOUS and is_binary):
        model = BINARY
        if not is_unit and state.rewards[1] != BINARY:
            unit = values[1] - values[0]
        else:
            zero = 0.0
    elif state.rewards[0] == CONTINUOUS and state.seen[0] > 0:
        zero = offset[0]
    is_same = model == state.rewards[0] and zero == offset[0] and unit == offset[1]
    if not is_same and state.seen[0] > 0:
        for i in range(min(state.time[0], state.history.arm.size)):
            raw = offset[0] + offset[1] * state.history.reward[i]
            state.history.reward[i] = to_value(raw, model, zero, unit)
            state.history.inflation[i] = 1.0
    state.rewards[0], offset[0], offset[1] = model, zero, unit
    return not is_same or state.seen[0] == 0


@inline
def to_value(reward: float, model: int, zero: float, unit: float) -> float:
    """Return a reward as the filters see it: 0 or 1 if binary, else minus the first reward."""
    if model == BINARY:
        return 1.0 if reward > zero + 0.5 * unit else 0.0
    return reward - zero


@inner
def smc_update(state: SMCState, arm: int, reward: float) -> None:
    """Update all populations with the reward of this step; time advances by one."""
    history, t = state.history, state.time[0]
    size, must_relearn = history.arm.size, set_reward_model(state, reward)
    value = to_value(reward, state.rewards[0], state.offset[0], state.offset[1])
    inflation = 1.0 if must_relearn else mark_outlier(state, arm, value)
    for k in range(state.context.shape[1]):
        history.context[t % size, k] = state.context[0, k]
    history.arm[t % size], history.reward[t % size], history.inflation[t % size] = arm, value, inflation
    state.time[0] += 1
    state.seen[0] += 1
    if must_relearn:
        first = max(t + 1 - size, 0)
        while history.arm[first % size] < 0:
            first += 1
        state.relearnt[0] = t
        begin_all(state, first)
    smc_step(state, t)
    if state.rewards[0] == CONTINUOUS and state.seen[0] >= state.review[0]:
        state.review[0] = max(MIN_REWARDS, int(REVIEW_GROWTH * state.seen[0]))
        if state.seen[0] >= MIN_REWARDS:
            review_outliers(state, t)


@inner
def smc_update_missing(state: SMCState) -> None:
    """Advance every filter by a step without a reward; at least one reward came before."""
    t = state.time[0]
    state.history.arm[t % state.history.arm.size] = -1
    state.time[0] += 1
    smc_step(state, t)
