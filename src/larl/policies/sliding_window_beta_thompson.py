"""Sliding-window Beta–Bernoulli Thompson sampling (Trovò et al. 2020)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from larl._core.random import Bits
from larl._core.validation import Vector, checked, integer, interval, required
from larl.policies._beta_thompson import best_beta_sample, beta_sample_probabilities, moments, prior_pair
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import register
from larl.policies._reward_range import unit_reward
from larl.policies._window import Window, slide, window_bounds, window_init


class WindowBetaThompsonState(NamedTuple):
    window: Window
    successes: float  # of the prior
    failures: float
    low: float
    high: float


def bounds(initial: WindowBetaThompsonState, state: WindowBetaThompsonState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return window_bounds(initial.window)


def act(state: WindowBetaThompsonState, bits: Bits) -> int:
    return best_beta_sample(bits, state.window.plays, state.window.total, state.successes, state.failures)


def update(state: WindowBetaThompsonState, arm: int, reward: float) -> None:
    slide(state.window, arm, unit_reward(reward, state.low, state.high))


def update_missing(state: WindowBetaThompsonState, arm: int) -> None:
    slide(state.window, -1, 0.0)


def predict(state: WindowBetaThompsonState, arm: int) -> tuple[float, float]:
    window = state.window
    return moments(window.plays[arm], window.total[arm], state.successes, state.failures, state.low, state.high)


def action_probabilities(state: WindowBetaThompsonState, available: Mask, out: Floats) -> None:
    window = state.window
    beta_sample_probabilities(window.plays, window.total, state.successes, state.failures, available, out)


@register(
    WindowBetaThompsonState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class SlidingWindowBetaThompson(Policy):
    """`BetaThompson` on the last `window` steps (Trovò et al. 2020).

    Parameters
    ----------
    window : int, >= 1
        Number of steps in the window.
    prior : (float, float), 0.001 to 1e6 each, default (1.0, 1.0)
        Parameters (a, b) of the Beta prior.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    >>> import larl
    >>> agent = larl.Agent(larl.SlidingWindowBetaThompson(window=2), arms=["off", "on"])
    >>> for reward in (0.0, 1.0, 1.0):
    ...     _ = agent.observe(agent.record("on"), reward)
    >>> round(agent.decide().probabilities["on"], 4)  # Beta(3, 1) and Beta(1, 1)
    0.75
    """

    window: int = required(integer(1))
    prior: Vector = checked(prior_pair, (1.0, 1.0))
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> WindowBetaThompsonState:
        return WindowBetaThompsonState(
            window=window_init(self.window, arms),
            successes=self.prior[0],
            failures=self.prior[1],
            low=self.reward_range[0],
            high=self.reward_range[1],
        )
