"""Auto: Bayesian model averaging over latent-state models, by sequential Monte Carlo.

docs/theory.md derives the models; docs/auto.md has its regret in many worlds and the cases where it fails.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import implement
from larl._core.random import Bits, pick
from larl._core.validation import Integers, InvalidValue, checked, integer, integers, number, one_of
from larl.policies._allocation import posterior
from larl.policies._bounds import Bound
from larl.policies._context_scale import check_context, context_scale_init
from larl.policies._contract import Policy
from larl.policies._contract import predict as predict_reward  # in kernels
from larl.policies._probabilities import Mask, uniform_probabilities
from larl.policies._registry import register
from larl.policies.auto.layout import BINARY, CONTINUOUS
from larl.policies.auto.learning import smc_update, smc_update_missing
from larl.policies.auto.prior import Prior, to_prior
from larl.policies.auto.scoring import BINARY_FACTOR, MIN_SLOPE, score_arms
from larl.policies.auto.soa import Floats
from larl.policies.auto.state import DETECT, SMCState, smc_bounds, smc_init

if TYPE_CHECKING:
    from larl.worlds.base import World

MAX_ORDER = 1000  # the State grows with its square
RANDOM_REWARDS = 2  # arms are random until there are this many rewards: one reward gives no scale


class AutoState(NamedTuple):
    smc: SMCState
    mean: Floats  # (arms,) predicted mean, minus the first reward
    score: Floats  # (arms,) upper confidence bound that `act` maximises
    alpha: float


def bounds(initial: AutoState, state: AutoState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {f"smc.{name}": bound for name, bound in smc_bounds(initial.smc, state.smc).items()}


def act(state: AutoState, bits: Bits) -> int:
    score, best, ties = state.score, -math.inf, 0
    for arm in range(score.size):
        best = score[arm] if score[arm] > best else best
    for arm in range(score.size):
        ties += score[arm] == best
    if state.smc.seen[0] < RANDOM_REWARDS or ties == 0:
        return pick(bits, score.size)
    remaining, choice = pick(bits, ties), 0
    for arm in range(score.size):
        if score[arm] == best:
            choice = arm if remaining == 0 else choice
            remaining -= 1
    return choice


def update(state: AutoState, arm: int, reward: float) -> None:
    smc_update(state.smc, arm, reward)
    score_arms(state.smc, state.alpha, state.mean, state.score)


def update_missing(state: AutoState, arm: int) -> None:
    """Advance every filter without a measurement. Before the first reward, do nothing."""
    if state.smc.seen[0] > 0:
        smc_update_missing(state.smc)
        score_arms(state.smc, state.alpha, state.mean, state.score)


def set_context(state: AutoState, context: Floats) -> None:
    size = state.smc.context.shape[1]
    for k in range(size):
        state.smc.context[0, k] = context[k]
    if size > 0 and state.smc.seen[0] > 0:
        score_arms(state.smc, state.alpha, state.mean, state.score)


def predict(state: AutoState, arm: int) -> tuple[float, float]:
    if state.smc.seen[0] < RANDOM_REWARDS:
        return math.nan, math.nan
    zero, unit = state.smc.offset[0], state.smc.offset[1]
    return zero + unit * state.mean[arm], unit * (state.score[arm] - state.mean[arm])


def action_probabilities(state: AutoState, available: Mask, out: Floats) -> None:
    best, ties = -math.inf, 0
    for arm in range(out.size):
        best = state.score[arm] if available[arm] and state.score[arm] > best else best
    for arm in range(out.size):
        ties += available[arm] and state.score[arm] == best
    if state.smc.seen[0] < RANDOM_REWARDS or ties == 0:
        uniform_probabilities(available, out)
        return
    for arm in range(out.size):
        out[arm] = 1.0 / ties if available[arm] and state.score[arm] == best else 0.0


def auto_posterior(state: AutoState, arm: int) -> tuple[float, float]:
    """Return the posterior of Auto; with binary rewards, its bonus on the log odds as one of the probability."""
    mean, bonus = predict_reward(state, arm)
    if state.smc.rewards[0] == BINARY and bonus > 0.0:
        low = min(max(state.mean[arm], 1e-12), 1.0 - 1e-12)
        high = min(max(state.score[arm], low), 1.0 - 1e-12)
        rise = math.log(high / (1.0 - high)) - math.log(low / (1.0 - low))
        bonus = state.smc.offset[1] * max(low * (1.0 - low), MIN_SLOPE) * rise / BINARY_FACTOR
    return mean, bonus


implement(posterior, AutoState, auto_posterior)


@register(
    AutoState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
    set_context=set_context,
    checked=("mean", "score"),  # `replace_nonfinite` checks the particles at every reward
)
@dataclass(frozen=True)
class Auto(Policy):
    """The default policy: it learns the latent state's order, its dynamics and the arms from the rewards alone.

    It averages over latent AR bandits of all `orders`, constant arms, independent AR(1) arms and arms that load on a
    damped rotation, weighted by how well each model predicted the rewards so far. It plays the arm with the largest
    predicted mean + `alpha` standard deviations. Models that predict badly are dropped, and try again later on the
    newest rewards, so it adapts when the parameters change. One or two outliers in a row have little effect, unless
    the same number occurs again. Neither a constant added to all rewards nor a positive factor changes a decision. If
    rewards repeat exactly, as ratings do, every arm is played at least ½ log₂(t + 2) times. Time and memory per step
    are bounded, however long it runs.

    Parameters
    ----------
    alpha : float, >= 0, default 0.5
        Width of the confidence interval, in standard deviations of the predicted mean. With binary rewards it is
        ``2 * alpha`` standard deviations of the log odds.
    memory : int, >= 10, default 500
        It replays at most the last ``2 * memory`` steps; a normal distribution summarises what older rewards showed.
    orders : sequence of int, 1 to 1000, increasing, default (1, 2, 3, 4, 6, 8, 10)
        AR orders of the latent state that it considers.
    particles : int, >= 16, default 80
        Number of parameter draws for each order, rounded up to a multiple of 16. More are slower and more precise.
    rewards : "detect", "continuous" or "binary", default "detect"
        Model of the rewards. ``"detect"``: binary if all rewards are 0 or 1, or if three or more rewards have only two
        values; otherwise continuous. ``"binary"``: a reward counts as 1 if it is above ½, else as 0.
    prior : Prior or mapping, optional
        What earlier units show (`larl.learn_prior`), or the same as JSON types. The models above keep half of the prior
        probability, in case the unit differs. Rewards must have the units of the earlier ones.
    context : int, >= 0, default 0
        Length of the observed context of a step, in any unit: its numbers are standardised. The effects of a number on
        the arms shrink towards a common effect, and that towards 0. How much is learnt for each number.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "Auto", "orders": [1, 2]}')
    Auto(alpha=0.5, memory=500, orders=(1, 2), particles=80, rewards='detect', context=0, prior=None)
    """

    alpha: float = checked(number(0.0), 0.5)
    memory: int = checked(integer(10), 500)
    orders: Integers = checked(integers(1, MAX_ORDER), (1, 2, 3, 4, 6, 8, 10))
    particles: int = checked(integer(16), 80)
    rewards: str = checked(one_of("detect", "continuous", "binary"), "detect")
    context: int = checked(integer(0), 0)
    prior: Prior | None = checked(to_prior, None)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        check_context("Auto", self.context, world)
        model = {"detect": DETECT, "continuous": CONTINUOUS, "binary": BINARY}[self.rewards]
        if self.prior is not None and len(self.prior.arms) != arms:
            raise InvalidValue("Auto", "prior", self.prior, f"a prior of {arms} arms, not of {len(self.prior.arms)}")
        if self.prior is not None and self.rewards not in ("detect", self.prior.rewards):
            raise InvalidValue("Auto", "rewards", self.rewards, f'"detect" or "{self.prior.rewards}", as in the prior')
        learnt = {}
        if self.prior is not None:
            learnt = {BINARY if self.prior.rewards == "binary" else CONTINUOUS: self.prior.components}
        smc = smc_init(arms, tuple(self.orders), self.particles, self.memory, model, self.context, learnt)
        state = AutoState(smc, np.zeros(arms), np.zeros(arms), self.alpha)
        return context_scale_init(state, self.context, arms) if self.context else state

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and parameters as JSON types."""
        values = super().to_dict()
        prior = values.pop("prior")
        return values | ({"prior": prior.to_dict()} if prior is not None else {})
