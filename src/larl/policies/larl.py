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
from larl.policies._lags import lags_init, pair_count, push
from larl.policies._tiles import Pairs, Tiles, learn, scores, tiles_init

if TYPE_CHECKING:
    from larl.world import World


class LARLState(NamedTuple):
    ridge: Tiles
    lags: Pairs
    time: NDArray[np.int64]  # (1,)
    arms: int
    alpha: float


@inline
def best_arm(ridge: Tiles, lags: Pairs, s: int, arms: int, alpha: float) -> int:
    """The lowest arm with the largest Φᵀθ_a + α√(ΦᵀV_a⁻¹Φ)."""
    best, choice = -math.inf, 0
    for arm in range(0, arms, 2):
        other = min(arm + 1, arms - 1)  # the last of an odd number is its own other
        mean, width, other_mean, other_width = scores(ridge, arm, other, lags, s + 1)
        if mean + alpha * width > best:
            best, choice = mean + alpha * width, arm
        if other_mean + alpha * other_width > best:
            best, choice = other_mean + alpha * other_width, other
    return choice


def act(state: LARLState, word: np.uint64) -> int:
    s = state.lags.place.size - 1
    if state.time[0] < s:
        return pick(word, state.arms)
    return best_arm(state.ridge, state.lags, s, state.arms, state.alpha)


def update(state: LARLState, arm: int, reward: float) -> None:
    s = state.lags.place.size - 1
    if state.time[0] >= s:
        learn(state.ridge, arm, state.lags, s + 1, pair_count(s, state.arms), reward)
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
        ridge = tiles_init(arms, pair_count(self.s, arms), self.ridge)
        lags, time = lags_init(self.s, arms), np.zeros(1, dtype=np.int64)
        if self.radius == "theory":
            return _theory_radius.init(ridge, lags, time, self.delta, horizon, world)
        return LARLState(ridge, lags, time, arms, self.alpha)
