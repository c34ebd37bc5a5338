"""MarkovOracle: the exact forward filter with the world's true parameters (Baum et al. 1970), played greedily."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from larl._core.random import Bits
from larl.policies._contract import Policy
from larl.policies._markov_model import known_chain
from larl.policies._registry import register
from larl.statespace.forward_filter import (
    ForwardState,
    best_expected_arm,
    expected_mean,
    initial_forward_state,
    predict_belief,
    update_forward,
)

if TYPE_CHECKING:
    from larl.worlds.base import World


class MarkovOracleState(NamedTuple):
    filter: ForwardState


def act(state: MarkovOracleState, bits: Bits) -> int:
    return best_expected_arm(state.filter.belief, state.filter.means)


def update(state: MarkovOracleState, arm: int, reward: float) -> None:
    update_forward(state.filter, arm, reward)


def update_missing(state: MarkovOracleState, arm: int) -> None:
    predict_belief(state.filter)


def predict(state: MarkovOracleState, arm: int) -> tuple[float, float]:
    return expected_mean(state.filter.belief, state.filter.means, arm), 0.0


@register(MarkovOracleState, act, update, update_missing=update_missing, predict=predict)
@dataclass(frozen=True)
class MarkovOracle(Policy):
    """Play the arm with the largest expected mean under the exact belief about the hidden state.

    It knows the parameters of its world, a `larl.worlds.LatentMarkov`, and does not explore. If the arms differ in what
    they reveal about the state, a policy that explores may have less regret.

    Raises
    ------
    larl.InvalidValue
        By ``init``, if the world is no `larl.worlds.LatentMarkov`.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_markov(states=2, arms=2, seed=0)
    >>> result = larl.compare({"oracle": larl.policies.MarkovOracle()}, world, horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    44.0
    """

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> MarkovOracleState:
        return MarkovOracleState(initial_forward_state(known_chain("MarkovOracle", world, arms)))
