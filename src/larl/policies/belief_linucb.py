"""LinUCB on the belief about a hidden Markov chain (Nelson et al. 2022, L2UCB)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import inline
from larl._core.random import Bits
from larl._core.validation import InvalidValue, Matrix, checked, integer, matrix, number, one_of, optional
from larl.policies._contract import Policy
from larl.policies._first_scale import first_scale_init
from larl.policies._linalg.ridge import Ridge, dense_add_row, dense_predict, ridge_init
from larl.policies._markov_model import given_model, known_chain
from larl.policies._probabilities import Floats
from larl.policies._registry import bind, register
from larl.statespace.forward_filter import ForwardState, initial_forward_state, predict_belief, update_forward
from larl.statespace.online_em import OnlineEM, online_em_init, online_em_missing, online_em_update

if TYPE_CHECKING:
    from larl.worlds.base import World


class LearntBeliefState(NamedTuple):
    em: OnlineEM
    previous: Floats  # (n,) P(x_{t−1} | rewards before t)
    ridge: Ridge
    alpha: float


class GivenBeliefState(NamedTuple):
    filter: ForwardState
    ridge: Ridge
    alpha: float


@inline
def best_arm(ridge: Ridge, belief: Floats, alpha: float) -> int:
    """Return the lowest arm with the largest upper confidence bound."""
    best, choice = -math.inf, 0
    for arm in range(ridge.theta.shape[0]):
        mean, width = dense_predict(ridge, arm, belief)
        if mean + alpha * width > best:
            best, choice = mean + alpha * width, arm
    return choice


def learnt_act(state: LearntBeliefState, bits: Bits) -> int:
    return best_arm(state.ridge, state.em.belief, state.alpha)


def learnt_update(state: LearntBeliefState, arm: int, reward: float) -> None:
    dense_add_row(state.ridge, arm, state.em.belief, reward)
    online_em_update(state.em, state.previous, arm, reward)


def learnt_update_missing(state: LearntBeliefState, arm: int) -> None:
    online_em_missing(state.em, state.previous)


def learnt_predict(state: LearntBeliefState, arm: int) -> tuple[float, float]:
    mean, width = dense_predict(state.ridge, arm, state.em.belief)
    return mean, state.alpha * width


def given_act(state: GivenBeliefState, bits: Bits) -> int:
    return best_arm(state.ridge, state.filter.belief, state.alpha)


def given_update(state: GivenBeliefState, arm: int, reward: float) -> None:
    dense_add_row(state.ridge, arm, state.filter.belief, reward)
    update_forward(state.filter, arm, reward)


def given_update_missing(state: GivenBeliefState, arm: int) -> None:
    predict_belief(state.filter)


def given_predict(state: GivenBeliefState, arm: int) -> tuple[float, float]:
    mean, width = dense_predict(state.ridge, arm, state.filter.belief)
    return mean, state.alpha * width


bind(
    GivenBeliefState,
    given_act,
    given_update,
    "BeliefLinUCB",
    update_missing=given_update_missing,
    predict=given_predict,
)


@register(LearntBeliefState, learnt_act, learnt_update, update_missing=learnt_update_missing, predict=learnt_predict)
@dataclass(frozen=True)
class BeliefLinUCB(Policy):
    """LinUCB whose context is the belief about a hidden Markov chain (Nelson et al. 2022, L2UCB).

    Each arm has a ridge regression of its rewards on the predicted distribution of the state. The chain is learnt by
    online EM (Cappé 2011) from arms and rewards, or it is given.

    Parameters
    ----------
    states : int, >= 1, default 2
        Number of hidden states, if the model is learnt.
    alpha : float, >= 0, default 1.0
        Width of the confidence interval, in standard errors of the prediction for noise of sd 1.
    ridge : float, > 0, default 1.0
        Penalty λ of each arm's regression: V_a = λI + Σ bbᵀ for beliefs b.
    model : {"learnt", "given"}, default "learnt"
        ``"learnt"``: rewards are standardised by the median and scale of the first ones, which come from random arms
        (8, or two per arm if that is more). ``"given"``: by `transition`, `means` and `sigma_r`, or if these are None
        by the world, which must be a `larl.worlds.LatentMarkov`; rewards are used in their own unit.
    persistence : float, 0 < persistence < 1, default 0.9
        Prior mean of the probability of staying in a state, if the model is learnt.
    transition : matrix, n × n, optional
        Probabilities of the next state, one row for each state. The first state has the stationary distribution.
    means : matrix, n × arms, optional
        Mean reward of each arm in each state, in units of the reward. They decide the belief only.
    sigma_r : float, >= 0, optional
        Standard deviation of the reward noise, in units of the reward.

    Raises
    ------
    larl.InvalidValue
        If only a part of the model is given, or a model that is not used.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.random_markov(states=2, arms=2, seed=0)
    >>> result = larl.compare({"L2UCB": larl.policies.BeliefLinUCB(states=2)}, world, horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    50.0
    """

    states: int = checked(integer(1), 2)
    alpha: float = checked(number(0.0), 1.0)
    ridge: float = checked(number(above=0.0), 1.0)
    model: str = checked(one_of("learnt", "given"), "learnt")
    persistence: float = checked(number(above=0.0, below=1.0), 0.9)
    transition: Matrix | None = checked(optional(matrix()), None)
    means: Matrix | None = checked(optional(matrix()), None)
    sigma_r: float | None = checked(optional(number(0.0)), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if given_model("BeliefLinUCB", self.transition, self.means, self.sigma_r) and self.model == "learnt":
            raise InvalidValue("BeliefLinUCB", "model", self.model, "'given', because transition is given")

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        if self.model == "learnt":
            state = LearntBeliefState(
                online_em_init(self.states, arms, self.persistence),
                np.full(self.states, 1.0 / self.states),
                ridge_init(arms, self.states, self.ridge),
                self.alpha,
            )
            return first_scale_init(state, arms)
        model = given_model("BeliefLinUCB", self.transition, self.means, self.sigma_r)
        chain = known_chain("BeliefLinUCB", world if model is None else model, arms)
        return GivenBeliefState(initial_forward_state(chain), ridge_init(arms, chain.states, self.ridge), self.alpha)
