"""CUSUM-UCB: UCB whose arms restart when a cumulative-sum test finds a change (Liu, Lee & Shroff 2018)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits, pick, uniform
from larl._core.validation import boolean, checked, integer, number
from larl.policies._change_detection import all_arms, largest_bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, uniform_probabilities
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class CUSUMUCBState(NamedTuple):
    """All since the last restart of each arm."""

    plays: NDArray[np.float64]  # (arms,) number of plays
    total: NDArray[np.float64]  # (arms,) sum of rewards
    first: NDArray[np.float64]  # (arms,) sum of the first M rewards
    rise: NDArray[np.float64]  # (arms,) cumulative sum of the test for a larger mean
    fall: NDArray[np.float64]  # (arms,) cumulative sum of the test for a smaller mean
    reference: float  # M
    epsilon: float
    threshold: float
    alpha: float
    width: float  # scale · √ξ


def act(state: CUSUMUCBState, bits: Bits) -> int:
    if uniform(bits) < state.alpha:
        return pick(bits, state.plays.size)
    return largest_bound(state, all_arms(state.plays.size))


def update(state: CUSUMUCBState, arm: int, reward: float) -> None:
    state.plays[arm] += 1.0
    state.total[arm] += reward
    if state.plays[arm] <= state.reference:
        state.first[arm] += reward
        return
    excess = reward - state.first[arm] / state.reference
    state.rise[arm] = max(0.0, state.rise[arm] + excess - state.epsilon)
    state.fall[arm] = max(0.0, state.fall[arm] - excess - state.epsilon)
    if max(state.rise[arm], state.fall[arm]) >= state.threshold:
        state.plays[arm], state.total[arm], state.first[arm] = 0.0, 0.0, 0.0
        state.rise[arm], state.fall[arm] = 0.0, 0.0


def predict(state: CUSUMUCBState, arm: int) -> tuple[float, float]:
    if state.plays[arm] == 0.0:
        return math.nan, math.inf
    plays = 0.0
    for other in range(state.plays.size):
        plays += state.plays[other]
    return state.total[arm] / state.plays[arm], state.width * math.sqrt(math.log(plays) / state.plays[arm])


def action_probabilities(state: CUSUMUCBState, available: Mask, out: Floats) -> None:
    uniform_probabilities(available, out)
    for arm in range(out.size):
        out[arm] *= state.alpha
    out[largest_bound(state, available)] += 1.0 - state.alpha


@register(CUSUMUCBState, act, update, predict=predict, action_probabilities=action_probabilities)
@dataclass(frozen=True)
class CUSUMUCB(Policy):
    """UCB with a restart of an arm when a cumulative-sum test finds a change of its mean (Liu, Lee & Shroff 2018).

    The mean û of an arm's first M rewards is its reference. After each later reward r, with B = `scale`,
    g⁺ = max(0, g⁺ + r − û − εB) and g⁻ = max(0, g⁻ + û − r − εB). If one of them reaches hB, the arm forgets its
    rewards and gets a new reference. With probability α a random arm is played, otherwise the one with the largest
    mean + B√(ξ log n / N), for the number N of plays of the arm since its restart, and n the sum of N over all arms.
    An arm without a play since its restart comes first.

    The paper has rewards in [0, 1] and B = 1. The defaults are for rewards with a standard deviation of about `scale`:
    without a change, half of the arms restart within about 1,200 plays; a change by 2 `scale` is found after about 6.

    Parameters
    ----------
    reference : int, >= 1, default 20
        Number M of rewards in the reference. No change is found during these plays.
    epsilon : float, >= 0, default 0.5
        Drift ε of the test, in units of `scale`: half of the smallest change that should be found.
    threshold : float, > 0, default 8.0
        Threshold h of the test, in units of `scale`.
    alpha : float, 0 <= alpha <= 1, default 0.05
        Probability α of a random arm, so that changes of arms that look bad are found too.
    scale : float, > 0, default 1.0
        Size B of the rewards, in units of the reward, or of their scale if `standardise`.
    xi : float, >= 0, default 1.0
        Exploration constant ξ.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.CUSUMUCB()
    >>> result = larl.compare({"CUSUM-UCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    259.0
    """

    reference: int = checked(integer(1), 20)
    epsilon: float = checked(number(0.0), 0.5)
    threshold: float = checked(number(above=0.0), 8.0)
    alpha: float = checked(number(0.0, 1.0), 0.05)
    scale: float = checked(number(above=0.0), 1.0)
    xi: float = checked(number(0.0), 1.0)
    standardise: bool = checked(boolean(), False)

    def init(self, arms: int, **_: Any) -> Any:
        state = CUSUMUCBState(
            plays=np.zeros(arms),
            total=np.zeros(arms),
            first=np.zeros(arms),
            rise=np.zeros(arms),
            fall=np.zeros(arms),
            reference=float(self.reference),
            epsilon=self.epsilon * self.scale,
            threshold=self.threshold * self.scale,
            alpha=self.alpha,
            width=self.scale * math.sqrt(self.xi),
        )
        return standard_init(state, arms) if self.standardise else state
