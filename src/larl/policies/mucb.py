"""M-UCB: UCB that restarts when the two halves of an arm's latest rewards differ (Cao, Wen, Kveton & Xie 2019)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.random import Bits
from larl._core.validation import InvalidValue, boolean, checked, integer, number
from larl.policies._bounds import STEPS, Bound
from larl.policies._change_detection import all_arms, cycle_or_largest_bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._standardise import standard_init


class MUCBState(NamedTuple):
    """All since the last restart."""

    latest: NDArray[np.float64]  # (arms, window) latest rewards of each arm, ring buffers
    plays: NDArray[np.int64]  # (arms,) number of plays
    total: NDArray[np.float64]  # (arms,) sum of rewards
    time: NDArray[np.int64]  # (1,) number of steps
    period: int  # ⌈arms/γ⌉
    threshold: float  # b
    width: float  # scale · √ξ


def bounds(initial: MUCBState, state: MUCBState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"plays": STEPS, "time": STEPS}


def act(state: MUCBState, bits: Bits) -> int:
    return cycle_or_largest_bound(state, state.time[0], state.period, all_arms(state.plays.size))


def update(state: MUCBState, arm: int, reward: float) -> None:
    window = state.latest.shape[1]
    state.latest[arm, state.plays[arm] % window] = reward
    state.plays[arm] += 1
    state.total[arm] += reward
    state.time[0] += 1
    if state.plays[arm] >= window and abs(half_difference(state, arm)) > state.threshold:
        state.time[0] = 0
        for other in range(state.plays.size):
            state.plays[other], state.total[other] = 0, 0.0


@inline
def half_difference(state: MUCBState, arm: int) -> float:
    """Return the sum of the later half of the arm's latest rewards minus that of the earlier half."""
    window, difference = state.latest.shape[1], 0.0
    for i in range(window):
        reward = state.latest[arm, (state.plays[arm] + i) % window]
        difference += reward if 2 * i >= window else -reward
    return difference


def update_missing(state: MUCBState, arm: int) -> None:
    """Advance the cycle of forced exploration."""
    state.time[0] += 1


def predict(state: MUCBState, arm: int) -> tuple[float, float]:
    if state.plays[arm] == 0:
        return math.nan, math.inf
    return state.total[arm] / state.plays[arm], state.width * math.sqrt(math.log(state.time[0]) / state.plays[arm])


def action_probabilities(state: MUCBState, available: Mask, out: Floats) -> None:
    one_hot(cycle_or_largest_bound(state, state.time[0], state.period, available), out)


@register(
    MUCBState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class MUCB(Policy):
    """UCB with a restart of all arms when the latest rewards of one arm show a change (Cao, Wen, Kveton & Xie 2019).

    With B = `scale`, all arms restart if the sums of the earlier and of the later half of the last w rewards of the
    arm that was played differ by more than b = `threshold` · B√w. With the number t of steps since the restart and K
    arms, the steps with t mod ⌈K/γ⌉ < K play each arm once, in order. Other steps play the arm with the largest
    mean + B√(ξ log t / N), for the number N of its plays since the restart. If the arm of a step is not available, the
    available arm with the largest upper bound is played.

    The paper has rewards in [0, 1], B = 1 and b = √(w log(2KT²)/2) for T steps: `threshold` = √(log(2KT²)/2). For
    normal rewards with standard deviation B, the same limit of false alarms has `threshold` = √(2 log(2KT²)), which
    is 4.9 for K = 2 and T = 200.

    Parameters
    ----------
    window : int, even, >= 2, default 30
        Number w of rewards of an arm that are tested. No change is found in an arm with fewer plays.
    threshold : float, > 0, default 5.0
        Threshold of the test, in standard deviations of the difference if rewards have standard deviation `scale`.
    gamma : float, 1e-9 <= gamma <= 1, default 0.05
        Share γ of steps that play all arms in turn, so that changes of arms that look bad are found too.
    scale : float, > 0, default 1.0
        Size B of the rewards, in units of the reward, or of their scale if `standardise`.
    xi : float, >= 0, default 2.0
        Exploration constant ξ.
    standardise : bool, default False
        Subtract the median of the first 32 rewards and divide by their scale.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.MUCB()
    >>> result = larl.compare({"M-UCB": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    190.0
    """

    window: int = checked(integer(2), 30)
    threshold: float = checked(number(above=0.0), 5.0)
    gamma: float = checked(number(1e-9, 1.0), 0.05)
    scale: float = checked(number(above=0.0), 1.0)
    xi: float = checked(number(0.0), 2.0)
    standardise: bool = checked(boolean(), False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window % 2:
            raise InvalidValue("MUCB", "window", self.window, "an even whole number")

    def init(self, arms: int, **_: Any) -> Any:
        state = MUCBState(
            latest=np.zeros((arms, self.window)),
            plays=np.zeros(arms, dtype=np.int64),
            total=np.zeros(arms),
            time=np.zeros(1, dtype=np.int64),
            period=math.ceil(arms / self.gamma),
            threshold=self.threshold * self.scale * math.sqrt(self.window),
            width=self.scale * math.sqrt(self.xi),
        )
        return standard_init(state, arms) if self.standardise else state
