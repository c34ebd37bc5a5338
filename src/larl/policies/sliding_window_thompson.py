"""Thompson sampling on a sliding window (Trovò et al. 2020), Gaussian rewards."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._check import checked, number, required, whole
from larl._words import Bits
from larl.policies._contract import Policy, register
from larl.policies._odds import Floats, Open, surely
from larl.policies._thompson import best_sample, posterior, sample_odds
from larl.policies._window import Window, slide, window_init


class WindowThompsonState(NamedTuple):
    window: Window
    sigma: float
    prior_sd: float


def act(state: WindowThompsonState, bits: Bits) -> int:
    return best_sample(bits, state.window.plays, state.window.total, state.sigma, state.prior_sd)


def update(state: WindowThompsonState, arm: int, reward: float) -> None:
    slide(state.window, arm, reward)


def skip(state: WindowThompsonState, arm: int) -> None:
    slide(state.window, -1, 0.0)


def outlook(state: WindowThompsonState, arm: int) -> tuple[float, float]:
    return posterior(state.window.plays[arm], state.window.total[arm], state.sigma, state.prior_sd)


def odds(state: WindowThompsonState, available: Open, out: Floats) -> None:
    surely(-1, out)
    sample_odds(state.window.plays, state.window.total, state.sigma, state.prior_sd, 1.0, available, out)


@register(WindowThompsonState, act, update, skip=skip, outlook=outlook, odds=odds)
@dataclass(frozen=True)
class SlidingWindowThompson(Policy):
    """Thompson sampling on the plays of the last `window` steps."""

    window: int = required(whole(1))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> WindowThompsonState:
        return WindowThompsonState(window_init(self.window, arms), self.sigma, self.prior_sd)
