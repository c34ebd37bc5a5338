"""Auto: Bayesian model averaging over latent-state models, by sequential Monte Carlo.

docs/theory.md derives the models; docs/auto.md has its regret in many worlds and the cases where it fails.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import any_nan, inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import Integers, checked, integer, integers, number
from larl.policies._bounds import Bound
from larl.policies._contract import Policy
from larl.policies._probabilities import Mask, uniform_probabilities
from larl.policies._registry import register
from larl.policies.auto.layout import AR_STATE, DAMPED_ROTATION, INDEPENDENT_AR1, ModelKind, cov_index
from larl.policies.auto.smc import smc_update, smc_update_missing
from larl.policies.auto.soa import LANES, Floats
from larl.policies.auto.state import PopulationPrior, SMCState, smc_bounds, smc_init

if TYPE_CHECKING:
    from larl.worlds.base import World

RANDOM_REWARDS = 2  # arms are random until there are this many rewards: one reward gives no scale
# Prior mean and sd of each coordinate, in units of the latent shock; moves.py defines the coordinates.
LOADING, NOISE, NOISE_SHARE, START = (1.0, 0.5), (0.0, 1.0), (1.0, 3.0), (1.0, 1.0)
RATE, ANGLE, KAPPA, ROTATION_NOISE = (-3.5, 1.2), (-2.0, 1.5), (0.0, 1.0), (1.0, 1.5)
# Arms that share a state differ mostly in β, so their levels are close. Stationary arms differ only in their levels.
LEVEL_SD, STATIONARY_LEVEL_SD, MOVING_LEVEL_SD = (-3.0, 2.0), (-0.5, 0.5), (-2.0, 1.5)
STATIONARY_NOISE = (0.0, 0.3)  # narrow: only the ratio of level differences to noise matters there
LEVEL_WEIGHT = 4.0  # factor of the variance of an arm's level in its score: other arms give no information on it


def population_priors(arms: int, orders: tuple[int, ...], particles: int) -> list[PopulationPrior]:
    """Return the priors of the populations: constant arms, independent AR(1) arms, a damped rotation, each AR order.

    Larger orders have more prior weight: they contain the smaller ones and need more rewards to be recognised.
    """
    blocks, half = -(-particles // LANES), -(-particles // (2 * LANES))
    constant = [LOADING] * arms + [STATIONARY_NOISE, NOISE_SHARE, START, STATIONARY_LEVEL_SD]
    independent = [(0.0, 1.0)] + [LOADING] * arms + [NOISE, NOISE_SHARE, START, MOVING_LEVEL_SD, RATE]
    rotation = [RATE, ANGLE] + [LOADING] * arms + [ROTATION_NOISE, NOISE_SHARE, START, MOVING_LEVEL_SD] + [KAPPA] * arms
    priors = [
        PopulationPrior(ModelKind(0, AR_STATE), half, -0.2, constant),
        PopulationPrior(ModelKind(1, INDEPENDENT_AR1), half, -2.0, independent),
        PopulationPrior(ModelKind(2, DAMPED_ROTATION), blocks, 0.0, rotation),
    ]
    for p in orders:
        partial = (0.0, 1.0 if p == 1 else 0.7 / math.sqrt(p))
        coordinates = [partial] * p + [LOADING] * arms + [NOISE, NOISE_SHARE, START, LEVEL_SD]
        priors.append(PopulationPrior(ModelKind(p, AR_STATE), blocks, math.log(p / 4), coordinates))
    return priors


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


def predict(state: AutoState, arm: int) -> tuple[float, float]:
    if state.smc.seen[0] < RANDOM_REWARDS:
        return math.nan, math.nan
    return state.smc.offset[0] + state.mean[arm], state.score[arm] - state.mean[arm]


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


def has_nan(state: AutoState) -> bool:
    """Return whether a mean or a score is nan; `recover` checks the particles at every reward."""
    return any_nan(state.mean) or any_nan(state.score)


@inner
def score_arms(smc: SMCState, alpha: float, expected: Floats, score: Floats) -> None:
    """Set each arm's mean over all particles and its score, mean + α√(variance + LEVEL_WEIGHT · level variance).

    The first variance is that of the predicted mean between particles, the second the average posterior variance of the
    arm's level within a particle.
    """
    data, owner, pops, fields, t = smc.data, smc.owner, smc.populations, smc.fields, smc.time[0]
    top = -math.inf
    for population in range(pops.order.size):
        if pops.alive[population]:
            top = max(top, pops.evidence[population])
    for arm in range(score.size):
        total, first_moment, second_moment, level_variance = 0.0, 0.0, 0.0, 0.0
        for block in range(owner.size):
            p, is_rotation = pops.order[owner[block]], pops.form[owner[block]] == DAMPED_ROTATION
            z, level = fields.mean + fields.arms, fields.cov + cov_index(arm, arm)
            z += t % p if p > 0 and not is_rotation else 0
            for lane in range(LANES):
                weight = math.exp(data[block, fields.log_weight, lane] - top)
                mean = data[block, fields.mean + arm, lane]
                if p > 0:
                    mean += data[block, fields.beta + arm, lane] * data[block, z, lane]
                if is_rotation:
                    mean += data[block, fields.kappa + arm, lane] * data[block, z + 1, lane]
                total += weight
                first_moment += weight * mean
                second_moment += weight * mean * mean
                level_variance += weight * data[block, level, lane] * data[block, fields.squared_error, lane]
        mean = first_moment / total
        level_variance /= max(smc.seen[0] - 1, 1) * total
        expected[arm] = mean
        between = max(second_moment / total - mean * mean, 0.0)
        score[arm] = mean + alpha * math.sqrt(between + LEVEL_WEIGHT * max(level_variance, 0.0))
    enforce_min_plays(smc, score)


@inline
def enforce_min_plays(smc: SMCState, score: Floats) -> None:
    """If the last reward equals an earlier one, raise arms with fewer than ½ log₂(t + 2) rewards to the best score.

    Discrete rewards such as ratings violate the models' normal noise, and make them too certain about arms with few
    rewards. Rewards from a continuous distribution never repeat, so the rule does not affect them.
    """
    history, t = smc.history, min(smc.time[0], smc.history.arm.size)
    last = (smc.time[0] - 1) % history.arm.size
    is_repeated, best, least = False, -math.inf, 0.5 * math.log2(t + 2.0)
    for i in range(t):
        is_repeated |= i != last and history.arm[i] >= 0 and history.reward[i] == history.reward[last]
    if not is_repeated or history.arm[last] < 0:
        return
    for arm in range(score.size):
        best = max(best, score[arm])
    for arm in range(score.size):
        plays = 0
        for i in range(t):
            plays += history.arm[i] == arm
        if plays < least:
            score[arm] = best


@register(
    AutoState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
    has_nan=has_nan,
)
@dataclass(frozen=True)
class Auto(Policy):
    """The default policy: it learns the latent state's order, its dynamics and the arms from the rewards alone.

    It averages over latent AR bandits of all `orders`, constant arms, independent AR(1) arms and arms that load on a
    damped rotation, weighted by how well each model predicted the rewards so far. It plays the arm with the largest
    predicted mean + `alpha` standard deviations. Neither a constant added to all rewards nor a positive factor changes
    a decision. If rewards repeat exactly, as ratings do, every arm is played at least ½ log₂(t + 2) times. Time and
    memory per step are bounded, however long it runs.

    Parameters
    ----------
    alpha : float, >= 0, default 0.5
        Width of the confidence interval, in standard deviations of the predicted mean.
    memory : int, >= 10, default 500
        It replays at most the last ``2 * memory`` steps; a normal distribution summarises what older rewards showed.
    orders : sequence of int, >= 1, increasing, default (1, 2, 3, 4, 6, 8, 10)
        AR orders of the latent state that it considers.
    particles : int, >= 16, default 160
        Number of parameter draws for each order, rounded up to a multiple of 16. More are slower and more precise.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "Auto", "orders": [1, 2]}')
    Auto(alpha=0.5, memory=500, orders=(1, 2), particles=160)
    """

    alpha: float = checked(number(0.0), 0.5)
    memory: int = checked(integer(10), 500)
    orders: Integers = checked(integers(1), (1, 2, 3, 4, 6, 8, 10))
    particles: int = checked(integer(16), 160)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        return AutoState(
            smc_init(population_priors(arms, tuple(self.orders), self.particles), arms, self.memory),
            np.zeros(arms),
            np.zeros(arms),
            self.alpha,
        )
