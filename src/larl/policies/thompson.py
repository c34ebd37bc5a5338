"""Gaussian Thompson sampling: for still means, fading (Raj & Kalyani 2017), and in a window (Trovò et al. 2020)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import checked, number, whole
from larl.policies._contract import Policy, register
from larl.policies._thompson import sample
from larl.policies._window import Window, slide, window_init


class ThompsonState(NamedTuple):
    plays: NDArray[np.float64]  # (arms,) discounted number of plays
    total: NDArray[np.float64]  # (arms,) discounted sum of rewards
    discount: float
    sigma: float
    prior_sd: float


def act(state: ThompsonState, word: np.uint64) -> int:
    best, choice = -math.inf, 0
    for arm in range(state.plays.size):
        draw = sample(word, arm, state.plays[arm], state.total[arm], state.sigma, state.prior_sd)
        if draw > best:
            best, choice = draw, arm
    return choice


def update(state: ThompsonState, arm: int, reward: float) -> None:
    for other in range(state.plays.size):
        state.plays[other] *= state.discount
        state.total[other] *= state.discount
    state.plays[arm] += 1.0
    state.total[arm] += reward


@register(ThompsonState, act, update)
@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Means a priori N(0, prior_sd²), rewards N(mean, sigma²); the arm whose sampled mean is largest."""

    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> ThompsonState:
        return ThompsonState(np.zeros(arms), np.zeros(arms), 1.0, self.sigma, self.prior_sd)


@register(ThompsonState, act, update)
@dataclass(frozen=True)
class DiscountedThompson(Policy):
    """Thompson sampling whose counts and sums fade by `discount` every step: an unplayed arm returns to its prior."""

    discount: float = checked(number(above=0.0, high=1.0))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> ThompsonState:
        return ThompsonState(np.zeros(arms), np.zeros(arms), self.discount, self.sigma, self.prior_sd)


class WindowThompsonState(NamedTuple):
    window: Window
    sigma: float
    prior_sd: float


def window_act(state: WindowThompsonState, word: np.uint64) -> int:
    best, choice, window = -math.inf, 0, state.window
    for arm in range(window.plays.size):
        draw = sample(word, arm, window.plays[arm], window.total[arm], state.sigma, state.prior_sd)
        if draw > best:
            best, choice = draw, arm
    return choice


def window_update(state: WindowThompsonState, arm: int, reward: float) -> None:
    slide(state.window, arm, reward)


@register(WindowThompsonState, window_act, window_update)
@dataclass(frozen=True)
class SlidingWindowThompson(Policy):
    """Thompson sampling on the plays of the last `window` steps."""

    window: int = checked(whole(1))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> WindowThompsonState:
        return WindowThompsonState(window_init(self.window, arms), self.sigma, self.prior_sd)
