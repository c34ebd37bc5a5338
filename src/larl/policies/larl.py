"""LARL: LinUCB on the last s actions and rewards (Trella et al. 2025, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, one_of, whole
from larl._compile import inline
from larl._words import pick
from larl.policies import _theory_radius
from larl.policies._contract import Policy, register
from larl.policies._half import Half, half_init
from larl.policies._lags import Lags, dimension, lags_init, learn, push, score

if TYPE_CHECKING:
    from larl.world import World


class LARLState(NamedTuple):
    ridge: Half
    lags: Lags
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


@inline
def best_arm(ridge: Half, lags: Lags, s: int, arms: int, alpha: float) -> int:
    """The lowest arm with the largest Φᵀθ_a + α√(ΦᵀV_a⁻¹Φ)."""
    best, choice = -math.inf, 0
    for arm in range(arms):
        mean, width = score(ridge, arm, lags, s)
        if mean + alpha * width > best:
            best, choice = mean + alpha * width, arm
    return choice


def act(state: LARLState, word: np.uint64) -> int:
    s = state.lags.cell.size
    if state.time[0] < s:
        return pick(word, state.arms)
    return best_arm(state.ridge, state.lags, s, state.arms, state.alpha)


def update(state: LARLState, arm: int, reward: float) -> None:
    s = state.lags.cell.size
    if state.time[0] >= s:
        learn(state.ridge, arm, state.lags, s, state.arms, reward)
    push(state.lags, s, state.arms, arm, reward)
    state.time[0] += 1


@register(LARLState, act, update)
@dataclass(frozen=True)
class LARL(Policy):
    """LARL with s past steps in its context; the first s steps are random. s = 0 is UCB.

    The width of an arm's confidence interval is `alpha`, or with `radius="theory"` the radius of Lemma 3 at level
    `delta`, which takes the world's true parameters and a horizon, and a filter that has long been running when the
    trial begins (`theory.steady_start`); from another start its level holds only after a transient.
    """

    s: int = checked(whole(0))
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    radius: str = checked(one_of("alpha", "theory"), "alpha")
    delta: float = checked(number(above=0.0, below=1.0), 0.05)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        ridge = half_init(arms, dimension(self.s, arms), self.ridge)
        lags, time = lags_init(self.s), np.zeros(1, dtype=np.int64)
        if self.radius == "theory":
            return _theory_radius.init(ridge, lags, time, self.delta, horizon, world)
        return LARLState(ridge, lags, time, arms, self.alpha)
