"""Auto: the policy that is told nothing. A mixture over the worlds that its rewards leave possible.

docs/theory.md derives the model, docs/auto.md shows what it is worth, and where it fails.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import any_nan, inline, inner
from larl._core.random import Bits, pick
from larl._core.validation import Integers, checked, integer, integers, number
from larl.policies._contract import Policy, register
from larl.policies._probabilities import Mask, evenly
from larl.policies.auto.layout import LATENT, TURNING, WANDERING, Kind, entry
from larl.policies.auto.smc import Breed, Swarm, swarm_init, swarm_learn, swarm_update_missing
from larl.policies.auto.soa import LANES, Floats

if TYPE_CHECKING:
    from larl.worlds.base import World

FIRST = 2  # rewards of arms at random: before the second there is no scale
# Mean and sd a priori of each coordinate, in units of the latent shock; _particles.py says what they mean.
SIZE, NOISE, SCALED, START = (1.0, 0.5), (0.0, 1.0), (1.0, 3.0), (1.0, 1.0)
RATE, ANGLE, KAPPA, TURNING_NOISE = (-3.5, 1.2), (-2.0, 1.5), (0.0, 1.0), (1.0, 1.5)
# Arms that see one state are mostly alike but for β; arms that stand still are worth telling apart.
OWN, OWN_STILL, OWN_MOVING = (-3.0, 2.0), (-0.5, 0.5), (-2.0, 1.5)
STILL_NOISE = (0.0, 0.3)  # what counts there is how far apart levels are, in units of the noise
LEVEL = 4.0  # how often the variance of an arm's level counts: no other arm teaches it


def breeds(arms: int, orders: tuple[int, ...], particles: int) -> list[Breed]:
    """Arms that stand still, arms that wander, a state that turns in the plane; and every order of a latent AR.

    Longer orders are the likelier, as they contain the shorter ones and show themselves later.
    """
    blocks, half = -(-particles // LANES), -(-particles // (2 * LANES))
    still = [SIZE] * arms + [STILL_NOISE, SCALED, START, OWN_STILL]
    wandering = [(0.0, 1.0)] + [SIZE] * arms + [NOISE, SCALED, START, OWN_MOVING, RATE]
    turning = [RATE, ANGLE] + [SIZE] * arms + [TURNING_NOISE, SCALED, START, OWN_MOVING] + [KAPPA] * arms
    found = [
        Breed(Kind(0, LATENT), half, -0.2, still),
        Breed(Kind(1, WANDERING), half, -2.0, wandering),
        Breed(Kind(2, TURNING), blocks, 0.0, turning),
    ]
    for p in orders:
        partial = (0.0, 1.0 if p == 1 else 0.7 / math.sqrt(p))
        found.append(
            Breed(Kind(p, LATENT), blocks, math.log(p / 4), [partial] * p + [SIZE] * arms + [NOISE, SCALED, START, OWN])
        )
    return found


class AutoState(NamedTuple):
    swarm: Swarm
    mean: Floats  # (arms,) what is expected, counted from the first reward
    score: Floats  # (arms,) what `act` compares
    alpha: float


def act(state: AutoState, bits: Bits) -> int:
    score, best, ties = state.score, -math.inf, 0
    for arm in range(score.size):
        best = score[arm] if score[arm] > best else best
    for arm in range(score.size):
        ties += score[arm] == best
    if state.swarm.seen[0] < FIRST or ties == 0:
        return pick(bits, score.size)
    left, choice = pick(bits, ties), 0
    for arm in range(score.size):
        if score[arm] == best:
            choice = arm if left == 0 else choice
            left -= 1
    return choice


def update(state: AutoState, arm: int, reward: float) -> None:
    swarm_learn(state.swarm, arm, reward)
    judge(state.swarm, state.alpha, state.mean, state.score)


def update_missing(state: AutoState, arm: int) -> None:
    """Every filter predicts through it. Before the first reward, nothing."""
    if state.swarm.seen[0] > 0:
        swarm_update_missing(state.swarm)
        judge(state.swarm, state.alpha, state.mean, state.score)


def predict(state: AutoState, arm: int) -> tuple[float, float]:
    if state.swarm.seen[0] < FIRST:
        return math.nan, math.nan
    return state.swarm.offset[0] + state.mean[arm], state.score[arm] - state.mean[arm]


def action_probabilities(state: AutoState, available: Mask, out: Floats) -> None:
    best, ties = -math.inf, 0
    for arm in range(out.size):
        best = state.score[arm] if available[arm] and state.score[arm] > best else best
    for arm in range(out.size):
        ties += available[arm] and state.score[arm] == best
    if state.swarm.seen[0] < FIRST or ties == 0:
        evenly(available, out)
        return
    for arm in range(out.size):
        out[arm] = 1.0 / ties if available[arm] and state.score[arm] == best else 0.0


def has_nan(state: AutoState) -> bool:
    """Whether means or scores are nan; of the particles `recover` makes sure at every reward."""
    return any_nan(state.mean) or any_nan(state.score)


@inner
def judge(swarm: Swarm, alpha: float, expected: Floats, score: Floats) -> None:
    """Set every arm's mean over all particles, and its score: that plus α standard deviations of it and of the level.

    The standard deviation of the level counts doubly.
    """
    data, owner, pops, rows, t = swarm.data, swarm.owner, swarm.populations, swarm.rows, swarm.time[0]
    top = -math.inf
    for mine in range(pops.order.size):
        if pops.alive[mine]:
            top = max(top, pops.evidence[mine])
    for arm in range(score.size):
        total, first, second, within = 0.0, 0.0, 0.0, 0.0
        for block in range(owner.size):
            p, turning = pops.order[owner[block]], pops.form[owner[block]] == TURNING
            z, level = rows.mean + rows.arms, rows.cov + entry(arm, arm)
            z += t % p if p > 0 and not turning else 0
            for lane in range(LANES):
                weight = math.exp(data[block, rows.weight, lane] - top)
                mean = data[block, rows.mean + arm, lane]
                if p > 0:
                    mean += data[block, rows.beta + arm, lane] * data[block, z, lane]
                if turning:
                    mean += data[block, rows.kappa + arm, lane] * data[block, z + 1, lane]
                total += weight
                first += weight * mean
                second += weight * mean * mean
                within += weight * data[block, level, lane] * data[block, rows.square, lane]
        mean = first / total
        within /= max(swarm.seen[0] - 1, 1) * total
        expected[arm] = mean
        score[arm] = mean + alpha * math.sqrt(max(second / total - mean * mean, 0.0) + LEVEL * max(within, 0.0))
    keep_trying(swarm, score)


@inline
def keep_trying(swarm: Swarm, score: Floats) -> None:
    """If the last reward equals an earlier one: arms with fewer than ½ log₂(t + 2) rewards score as the best one does.

    Rewards that repeat, such as ratings, are not what the models think they are, and make them too certain of arms
    that they have hardly tried. Rewards from a continuous distribution never do.
    """
    history, t = swarm.history, min(swarm.time[0], swarm.history.arm.size)
    last = (swarm.time[0] - 1) % history.arm.size
    repeats, best, least = False, -math.inf, 0.5 * math.log2(t + 2.0)
    for i in range(t):
        repeats |= i != last and history.arm[i] >= 0 and history.reward[i] == history.reward[last]
    if not repeats or history.arm[last] < 0:
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
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
    has_nan=has_nan,
)
@dataclass(frozen=True)
class Auto(Policy):
    """The policy to start with: it is told nothing, and learns the latent state's order, its dynamics and the arms.

    It weighs latent AR bandits of all `orders`, arms that stand still, arms that wander each on its own and arms that
    see a state which turns in the plane from different sides, by how well they predicted the rewards so far, and plays
    the arm of highest mean plus `alpha` standard deviations. Each order is represented by `particles`: more are slower
    and more exact. Adding a constant to all rewards or multiplying them changes nothing. Where rewards repeat exactly,
    as ratings do, every arm is tried at least ½ log₂(t + 2) times. It looks back at most 2 × `memory` steps; what older
    rewards said is kept in summary, so that time and memory a step stay bounded however long it runs.
    """

    alpha: float = checked(number(0.0), 0.5)
    memory: int = checked(integer(10), 500)
    orders: Integers = checked(integers(1), (1, 2, 3, 4, 6, 8, 10))
    particles: int = checked(integer(16), 160)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        return AutoState(
            swarm_init(breeds(arms, tuple(self.orders), self.particles), arms, self.memory),
            np.zeros(arms),
            np.zeros(arms),
            self.alpha,
        )
