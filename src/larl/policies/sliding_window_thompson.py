"""Sliding-window Thompson sampling with Gaussian rewards (Trovò et al. 2020)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._core.random import Bits
from larl._core.validation import checked, integer, number, required
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.policies._thompson import best_sample, posterior, sample_action_probabilities
from larl.policies._window import Window, slide, window_bounds, window_init


class WindowThompsonState(NamedTuple):
    window: Window
    sigma: float
    prior_sd: float


def bounds(initial: WindowThompsonState, state: WindowThompsonState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return window_bounds(initial.window)


def act(state: WindowThompsonState, bits: Bits) -> int:
    return best_sample(bits, state.window.plays, state.window.total, state.sigma, state.prior_sd)


def update(state: WindowThompsonState, arm: int, reward: float) -> None:
    slide(state.window, arm, reward)


def update_missing(state: WindowThompsonState, arm: int) -> None:
    slide(state.window, -1, 0.0)


def predict(state: WindowThompsonState, arm: int) -> tuple[float, float]:
    return posterior(state.window.plays[arm], state.window.total[arm], state.sigma, state.prior_sd)


def action_probabilities(state: WindowThompsonState, available: Mask, out: Floats) -> None:
    one_hot(-1, out)
    sample_action_probabilities(
        state.window.plays, state.window.total, state.sigma, state.prior_sd, 1.0, available, out
    )


@register(
    WindowThompsonState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class SlidingWindowThompson(Policy):
    """Thompson sampling on the last `window` steps (Trovò et al. 2020).

    Parameters
    ----------
    window : int, >= 1
        Number of steps in the window.
    sigma : float, > 0, default 1.0
        Standard deviation of the rewards around their mean, in units of the reward.
    prior_sd : float, > 0, default 1.0
        Prior standard deviation of the means, which have prior mean 0, in units of the reward.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.SlidingWindowThompson(window=50)
    >>> result = larl.compare({"SW-TS": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    230.0
    """

    window: int = required(integer(1))
    sigma: float = checked(number(above=0.0), 1.0)
    prior_sd: float = checked(number(above=0.0), 1.0)

    def init(self, arms: int, **_: Any) -> WindowThompsonState:
        return WindowThompsonState(window_init(self.window, arms), self.sigma, self.prior_sd)
