"""The rewards of each unit of a pilot, and their likelihood."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.states import Memory
from larl.live.kernels import learn_steps
from larl.policies.auto.layout import BINARY, CONTINUOUS, STATIONARY_AR, ModelKind
from larl.policies.auto.policy import Auto
from larl.policies.auto.replay import RewardHistory
from larl.policies.auto.unit_likelihood import unit_log_likelihood

MAX_ALL_SIGNS = 4  # arms up to which all combinations of signs are compared
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Unit(NamedTuple):
    """The rewards of a unit. Step 0 and the last one have a reward; arm −1 marks a step without one."""

    name: str
    history: RewardHistory
    rewards: int  # number of rewards


class Likelihood(NamedTuple):
    """Log-likelihood and σ² at several points."""

    value: Floats
    shock_variance: Floats


def make_unit(name: str, arm: Ints, reward: Floats, arms: int, model: int) -> Unit | None:
    """Return the unit, with outliers marked as `Auto` marks them; None without two rewards."""
    has_reward = np.flatnonzero((arm >= 0) & np.isfinite(reward))
    if has_reward.size < 2:
        return None
    used = slice(has_reward[0], has_reward[-1] + 1)
    arm, reward = arm[used].copy(), reward[used].copy()
    is_missing = (arm < 0) | ~np.isfinite(reward)
    arm[is_missing], reward[is_missing] = -1, 0.0
    zero = 0.0 if model == BINARY else float(reward[0])
    value = np.where(is_missing, 0.0, reward - zero)
    inflation = np.ones(arm.size) if model == BINARY else find_inflation(arm, reward, arms)
    history = RewardHistory(arm, value, inflation, np.zeros(arm.size), np.zeros((arm.size, 0)))
    return Unit(name, history, has_reward.size)


def find_inflation(arm: Ints, reward: Floats, arms: int) -> Floats:
    """Return the factor of the noise variance of each reward: above 1 for rewards that Auto takes for outliers."""
    memory = Memory(Auto(rewards="continuous", memory=max(10, -(-arm.size // 2))).init(arms))
    learn_steps(memory, arm, np.where(arm < 0, np.nan, reward))
    return np.array(memory.state().smc.history.inflation[: arm.size])


def model_kind(arms: int, order: int, model: int) -> ModelKind:
    """Return the model that a prior is learnt for."""
    return ModelKind(arms, order, STATIONARY_AR, model)


def evaluate(kind: ModelKind, unit: Unit, points: Floats, signs: Floats, level: Floats) -> Likelihood:
    """Return the log-likelihood of a unit's rewards at points (·, coordinates) with signs (·, arms)."""
    found = Likelihood(np.empty(len(points)), np.empty(len(points)))
    unit_log_likelihood(kind, unit.history, np.ascontiguousarray(points), np.ascontiguousarray(signs), level, *found)
    return found


def sign_patterns(arms: int) -> Floats:
    """Return the signs of β to compare, relative to the first arm: all of them, or with many arms, single flips."""
    if arms <= MAX_ALL_SIGNS:
        bits = (np.arange(2 ** (arms - 1))[:, None] >> np.arange(arms - 1)) & 1
        return np.hstack([np.ones((len(bits), 1)), 1.0 - 2.0 * bits])
    flips = np.ones((arms, arms))
    flips[np.arange(1, arms), np.arange(1, arms)] = -1.0
    return flips


def reward_model(rewards: Sequence[Floats]) -> int:
    """Return BINARY if all rewards are 0 or 1, else CONTINUOUS."""
    is_binary = all(np.isin(each[np.isfinite(each)], (0.0, 1.0)).all() for each in rewards)
    return BINARY if is_binary else CONTINUOUS
