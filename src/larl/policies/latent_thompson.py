"""Thompson sampling of a hidden state with a known model (Hong et al. 2020, "Non-Stationary Latent Bandits")."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from larl._core.random import Bits, uniform
from larl._core.validation import Matrix, checked, matrix, number, optional
from larl.policies._contract import Policy
from larl.policies._markov_model import best_arm_of_state, best_available_arm, draw_index, given_model, known_chain
from larl.policies._probabilities import Floats, Mask, one_hot
from larl.policies._registry import register
from larl.statespace.forward_filter import (
    ForwardState,
    expected_mean,
    initial_forward_state,
    predict_belief,
    update_forward,
)

if TYPE_CHECKING:
    from larl.worlds.base import World


class LatentThompsonState(NamedTuple):
    filter: ForwardState


def act(state: LatentThompsonState, bits: Bits) -> int:
    return best_arm_of_state(state.filter.means, draw_index(state.filter.belief, uniform(bits)))


def update(state: LatentThompsonState, arm: int, reward: float) -> None:
    update_forward(state.filter, arm, reward)


def update_missing(state: LatentThompsonState, arm: int) -> None:
    predict_belief(state.filter)


def predict(state: LatentThompsonState, arm: int) -> tuple[float, float]:
    """Return mean and standard deviation of the arm's mean under the belief."""
    belief, means, variance = state.filter.belief, state.filter.means, 0.0
    mean = expected_mean(belief, means, arm)
    for i in range(belief.size):
        variance += belief[i] * (means[i, arm] - mean) ** 2
    return mean, math.sqrt(variance)


def action_probabilities(state: LatentThompsonState, available: Mask, out: Floats) -> None:
    one_hot(-1, out)
    for i in range(state.filter.belief.size):
        out[best_available_arm(state.filter.means, i, available)] += state.filter.belief[i]


@register(
    LatentThompsonState,
    act,
    update,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class LatentThompson(Policy):
    """Draw a state from the exact belief of a known hidden Markov chain and play its best arm (Hong et al. 2020).

    The probability of an arm is the belief in the states whose best available arm it is.

    Parameters
    ----------
    transition : matrix, n × n, optional
        Probabilities of the next state, one row for each state. The first state has the stationary distribution, which
        must be unique. Without all three parameters, the policy takes the model, and its start, from the world, which
        must be a `larl.worlds.LatentMarkov`.
    means : matrix, n × arms, optional
        Mean reward of each arm in each state, in units of the reward.
    sigma_r : float, >= 0, optional
        Standard deviation of the reward noise, in units of the reward.

    Raises
    ------
    larl.InvalidValue
        If only a part of the model is given, or by ``init`` if there is neither a model nor a `LatentMarkov`.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_markov(states=2, arms=2, seed=0)
    >>> result = larl.compare({"latent": larl.policies.LatentThompson()}, world, horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    50.0
    """

    transition: Matrix | None = checked(optional(matrix()), None)
    means: Matrix | None = checked(optional(matrix()), None)
    sigma_r: float | None = checked(optional(number(0.0)), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        given_model("LatentThompson", self.transition, self.means, self.sigma_r)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> LatentThompsonState:
        model = given_model("LatentThompson", self.transition, self.means, self.sigma_r)
        known = known_chain("LatentThompson", world if model is None else model, arms)
        return LatentThompsonState(initial_forward_state(known))
