"""GLR-klUCB: kl-UCB with a likelihood-ratio test for changes (Besson, Kaufmann, Maillard & Seznec 2022)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl._core.random import Bits
from larl._core.validation import InvalidValue, boolean, checked, integer, number, one_of
from larl.policies._bernoulli_kl import bernoulli_kl, bernoulli_upper_bound
from larl.policies._bounds import STEPS, Bound
from larl.policies._change_detection import all_arms, cycle_or_largest_bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class GLRklUCBState(NamedTuple):
    latest: NDArray[np.float64]  # (arms, memory) latest rewards of each arm, ring buffers
    plays: NDArray[np.int64]  # (arms,) number of plays since the arm's restart
    total: NDArray[np.float64]  # (arms,) sum of rewards since the arm's restart
    since: NDArray[np.int64]  # (arms,) number of steps since the arm's restart
    time: NDArray[np.int64]  # (1,) number of all steps
    period: int  # ⌈arms/α⌉
    every: int
    delta: float
    sigma: float
    is_bernoulli: bool
    is_global: bool


def bounds(initial: GLRklUCBState, state: GLRklUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"plays": STEPS, "since": STEPS, "time": STEPS}


def act(state: GLRklUCBState, bits: Bits) -> int:
    return cycle_or_largest_bound(state, state.time[0], state.period, all_arms(state.plays.size))


@inline
def divergence(state: GLRklUCBState, p: float, q: float) -> float:
    """Return the Kullback–Leibler divergence of a reward with mean p from one with mean q."""
    if not state.is_bernoulli:
        deviation = (p - q) / state.sigma
        return 0.5 * deviation * deviation
    return bernoulli_kl(p, q)


@inner
def has_changed(state: GLRklUCBState, arm: int) -> bool:
    """Return whether, for some split of the arm's latest rewards, the likelihood ratio reaches its threshold."""
    memory, end = state.latest.shape[1], state.plays[arm]
    count, total, earlier = min(end, memory), 0.0, 0.0
    for i in range(end - count, end):
        total += state.latest[arm, i % memory]
    threshold = math.log(count * math.sqrt(count) / state.delta)
    for split in range(1, count):
        earlier += state.latest[arm, (end - count + split - 1) % memory]
        ratio = split * divergence(state, earlier / split, total / count)
        ratio += (count - split) * divergence(state, (total - earlier) / (count - split), total / count)
        if ratio >= threshold:
            return True
    return False


def update(state: GLRklUCBState, arm: int, reward: float) -> None:
    if state.is_bernoulli:
        reward = min(max(reward, 0.0), 1.0)
    state.latest[arm, state.plays[arm] % state.latest.shape[1]] = reward
    state.plays[arm] += 1
    state.total[arm] += reward
    advance_time(state)
    if state.plays[arm] % state.every == 0 and has_changed(state, arm):
        for other in range(state.plays.size):
            if state.is_global or other == arm:
                state.plays[other], state.total[other], state.since[other] = 0, 0.0, 0


@inline
def advance_time(state: GLRklUCBState) -> None:
    """Count a step."""
    state.time[0] += 1
    for arm in range(state.since.size):
        state.since[arm] += 1


def update_missing(state: GLRklUCBState, arm: int) -> None:
    advance_time(state)


def predict(state: GLRklUCBState, arm: int) -> tuple[float, float]:
    if state.plays[arm] == 0:
        return math.nan, math.inf
    mean, level = state.total[arm] / state.plays[arm], math.log(state.since[arm]) / state.plays[arm]
    if not state.is_bernoulli:
        return mean, state.sigma * math.sqrt(2.0 * level)
    return mean, bernoulli_upper_bound(mean, level) - mean


def action_probabilities(state: GLRklUCBState, available: Mask, out: Floats) -> None:
    one_hot(cycle_or_largest_bound(state, state.time[0], state.period, available), out)


@register(
    GLRklUCBState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class GLRklUCB(Policy):
    """kl-UCB with restarts at changes that a likelihood-ratio test finds (Besson, Kaufmann, Maillard & Seznec 2022).

    After a play of an arm, its n latest rewards since its restart are split in all ways into s earlier and n − s later
    ones, with means m₁ and m₂, and m of all. If s kl(m₁, m) + (n − s) kl(m₂, m) ≥ β(n, δ) = log(n√n/δ) for some s, the
    arm, or all arms, restart. This β is the one of the authors' experiments; their proof has a larger one. Of every
    ⌈K/α⌉ steps, the first K play each of the K arms once, in order. Other steps play the arm with the largest q
    with N kl(mean, q) ≤ log t, for the N plays and t steps since its restart. For normal rewards this is
    mean + σ√(2 log t / N). If the arm of a step is not available, the available arm with the largest upper bound is.

    The paper suggests δ = 1/√T and α of the order √(K log T / T) for T steps; in its experiments α grows with the
    number of restarts, here it is constant. It tests only every tenth step and every fifth split, here `every` sets
    the plays, and all splits are tested.

    Parameters
    ----------
    delta : float, 0 < delta < 1, default 0.05
        Error probability δ of the test: about the share of arms that restart within their first `memory` plays although
        their mean never changes.
    alpha : float, 1e-9 <= alpha <= 1, default 0.05
        Share α of steps that play all arms in turn, so that changes of arms that look bad are found too.
    restart : {"global", "local"}, default "global"
        Whether a change in one arm restarts all arms or only this arm.
    rewards : {"gaussian", "bernoulli"}, default "gaussian"
        Distribution of kl. With "bernoulli", rewards outside of [0, 1] are clipped.
    sigma : float, > 0, default 1.0
        Standard deviation σ of normal rewards around their mean, in units of the reward, or of their scale if
        `standardise`. Not used for Bernoulli rewards. Rewards in [0, 1] are covered by σ = ½.
    memory : int, >= 2, default 200
        Number of latest rewards of an arm that are tested. Estimates of means use all rewards since the restart.
    every : int, >= 1, default 1
        An arm is tested after every so many plays. A test takes time in proportion to `memory`.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale. For normal rewards only.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.GLRklUCB()
    >>> result = larl.compare({"GLR-klUCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    156.0
    """

    delta: float = checked(number(above=0.0, below=1.0), 0.05)
    alpha: float = checked(number(1e-9, 1.0), 0.05)
    restart: str = checked(one_of("global", "local"), "global")
    rewards: str = checked(one_of("gaussian", "bernoulli"), "gaussian")
    sigma: float = checked(number(above=0.0), 1.0)
    memory: int = checked(integer(2), 200)
    every: int = checked(integer(1, 2**31), 1)
    standardise: bool = checked(boolean(), False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.standardise and self.rewards == "bernoulli":
            raise InvalidValue("GLRklUCB", "standardise", True, "false with rewards = 'bernoulli'")

    def init(self, arms: int, **_: Any) -> Any:
        state = GLRklUCBState(
            latest=np.zeros((arms, self.memory)),
            plays=np.zeros(arms, dtype=np.int64),
            total=np.zeros(arms),
            since=np.zeros(arms, dtype=np.int64),
            time=np.zeros(1, dtype=np.int64),
            period=math.ceil(arms / self.alpha),
            every=self.every,
            delta=self.delta,
            sigma=self.sigma,
            is_bernoulli=self.rewards == "bernoulli",
            is_global=self.restart == "global",
        )
        return standard_init(state, arms) if self.standardise else state
