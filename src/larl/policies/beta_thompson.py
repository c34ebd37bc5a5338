"""Beta–Bernoulli Thompson sampling for stationary success probabilities (Thompson 1933; Agrawal & Goyal 2012)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.random import Bits
from larl._core.validation import Vector, checked, interval
from larl.policies._beta_thompson import best_beta_sample, beta_sample_probabilities, moments, prior_pair
from larl.policies._contract import Policy
from larl.policies._discounting import discount_and_add
from larl.policies._probabilities import Floats, Mask
from larl.policies._registry import register
from larl.policies._reward_range import unit_reward


class BetaThompsonState(NamedTuple):
    plays: NDArray[np.float64]  # (arms,) discounted number of plays
    total: NDArray[np.float64]  # (arms,) discounted sum of rewards, in [0, 1] each
    discount: float
    successes: float  # of the prior
    failures: float
    low: float
    high: float


def beta_thompson_init(arms: int, discount: float, prior: Vector, reward_range: Vector) -> BetaThompsonState:
    """Return the State before the first step."""
    return BetaThompsonState(
        plays=np.zeros(arms),
        total=np.zeros(arms),
        discount=discount,
        successes=prior[0],
        failures=prior[1],
        low=reward_range[0],
        high=reward_range[1],
    )


def act(state: BetaThompsonState, bits: Bits) -> int:
    return best_beta_sample(bits, state.plays, state.total, state.successes, state.failures)


def update(state: BetaThompsonState, arm: int, reward: float) -> None:
    discount_and_add(state.plays, state.total, state.discount, arm, unit_reward(reward, state.low, state.high))


def update_missing(state: BetaThompsonState, arm: int) -> None:
    discount_and_add(state.plays, state.total, state.discount, -1, 0.0)


def predict(state: BetaThompsonState, arm: int) -> tuple[float, float]:
    return moments(state.plays[arm], state.total[arm], state.successes, state.failures, state.low, state.high)


def action_probabilities(state: BetaThompsonState, available: Mask, out: Floats) -> None:
    beta_sample_probabilities(state.plays, state.total, state.successes, state.failures, available, out)


@register(
    BetaThompsonState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class BetaThompson(Policy):
    """Play the arm whose success probability, drawn from its Beta posterior, is the largest (Thompson 1933).

    For binary rewards. A reward r between 0 and 1 counts as r successes and 1 − r failures, so an update is not random;
    Agrawal & Goyal (2012) draw a success with probability r instead. `DiscountedBetaThompson` and
    `SlidingWindowBetaThompson` follow probabilities that drift.

    Parameters
    ----------
    prior : (float, float), 0.001 to 1e6 each, default (1.0, 1.0)
        Parameters (a, b) of the Beta prior: successes and failures before the first step. (1, 1) is uniform.
    reward_range : (float, float), low < high, default (0.0, 1.0)
        Rewards are mapped from this interval to [0, 1]; rewards outside are clipped.

    Examples
    --------
    After one success of "on", its posterior is Beta(2, 1) and that of "off" Beta(1, 1):

    >>> import larl
    >>> agent = larl.Agent(larl.BetaThompson(), arms=["off", "on"])
    >>> _ = agent.observe(agent.record("on"), 1.0)
    >>> round(agent.decide().probabilities["on"], 4)
    0.6667
    """

    prior: Vector = checked(prior_pair, (1.0, 1.0))
    reward_range: Vector = checked(interval(), (0.0, 1.0))

    def init(self, arms: int, **_: Any) -> BetaThompsonState:
        return beta_thompson_init(arms, 1.0, self.prior, self.reward_range)
