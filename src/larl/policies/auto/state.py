"""The State of Auto's sequential Monte Carlo sampler, before the first reward."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.states import share_fields
from larl.policies._bounds import MAX_STEPS, STEPS, Bound
from larl.policies.auto.layout import (
    AR_STATE,
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    STATIONARY_AR,
    ModelKind,
    coordinate_count,
    field_offsets,
)
from larl.policies.auto.parameters import effect_prior, prior_of
from larl.policies.auto.prior import PriorComponent
from larl.policies.auto.replay import RewardHistory
from larl.policies.auto.soa import LANES, Floats

MIN_MOVES, MAX_MOVES = 3, 12  # Metropolis steps of each particle after it was resampled
DEFAULT_SHARE = 0.5  # weight of the default models beside a learnt prior, in case it does not fit
DrawCounter = NDArray[np.uint64]  # (1,) number of 64-bit draws so far
DETECT = -1  # the observation model is chosen from the rewards
LOG_NO_WEIGHT = -1e300  # log weight of a particle or a population without weight
Learnt = Mapping[int, Sequence[PriorComponent]]  # components by observation model; as many for each, of the same orders


class Populations(NamedTuple):
    """One entry per population in every array. Each population has the particles of one model."""

    order: NDArray[np.int64]
    form: NDArray[np.int64]
    top: NDArray[np.int64]  # first row of its blocks in `data`
    blocks: NDArray[np.int64]  # number of blocks of LANES particles
    alive: NDArray[np.bool_]
    moves_due: NDArray[np.int64]  # moves that are still to be made
    born: NDArray[np.int64]  # step of the first reward that it learnt from
    first: NDArray[np.int64]  # first step that its moves replay
    next: NDArray[np.int64]  # the step that it learns from next
    seen: Floats  # number of prediction errors, including those that its prior of σ² is worth
    prior_square: Floats  # Σ e²/S that it started with
    evidence: Floats  # logarithm
    step_size: Floats  # of the moves
    mean: Floats  # (·, coordinates) of the prior, before the first step that can be replayed
    precision: Floats  # (·, coordinates, coordinates) of the same


class PopulationPriors(NamedTuple):
    """The priors of new populations: every array has the axes (observation models, populations, …)."""

    log_weight: Floats  # LOG_NO_WEIGHT: the population is not used
    mean: Floats  # (·, ·, coordinates)
    factor: Floats  # (·, ·, coordinates, coordinates) Cholesky factor of the covariance
    precision: Floats  # (·, ·, coordinates, coordinates)
    level: Floats  # (·, ·, arms) mean of the arms' levels
    sign_log_odds: Floats  # (·, ·, arms) log odds that β has the sign of that of the first arm; only of STATIONARY_AR
    errors: Floats  # number of prediction errors that the prior of σ² is worth
    shock_variance: Floats  # σ² in the prior
    is_permanent: NDArray[np.bool_]  # (populations,) whether the population is never dropped


share_fields(PopulationPriors, PopulationPriors._fields)


class SMCState(NamedTuple):
    data: Floats  # (rows of all blocks, LANES), see layout.py
    populations: Populations
    priors: PopulationPriors
    history: RewardHistory
    draws: DrawCounter
    rewards: NDArray[np.int64]  # (3,) observation model; the same as the user chose it, or DETECT; number of values
    values: Floats  # (2,) the first two different rewards, the smaller first
    offset: Floats  # (2,) what is subtracted from rewards, and what they are then divided by
    time: NDArray[np.int64]  # (1,)
    seen: NDArray[np.int64]  # (1,) number of observed rewards
    next_restart: NDArray[np.int64]  # (1,) the population that is restarted next
    review: NDArray[np.int64]  # (1,) number of rewards at which outliers are reviewed next
    relearnt: NDArray[np.int64]  # (1,) step at which all populations last started again
    context: Floats  # (1, contexts) of the next step
    arms: int


def smc_bounds(initial: SMCState, state: SMCState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers; `state` is that of one unit, or stacked over units."""
    pops, time = initial.populations, np.maximum(state.time, 0)
    oldest = np.maximum(time - initial.history.arm.size, 0)
    return {
        "populations.order": (pops.order, pops.order),
        "populations.form": (pops.form, pops.form),
        "populations.top": (pops.top, pops.top),
        "populations.blocks": (pops.blocks, pops.blocks),
        "populations.alive": (0, 1),
        "populations.moves_due": (0, MAX_MOVES),
        "populations.born": (0, time),
        "populations.first": (np.where(state.populations.alive, oldest, 0), time),
        "populations.next": (np.where(state.populations.alive, time, 0), time),
        "history.arm": (-1, initial.arms - 1),
        "draws": (0, 2**63 - 1),
        "rewards": ([CONTINUOUS, int(initial.rewards[1]), 0], [BINARY, int(initial.rewards[1]), 3]),
        "time": STEPS,
        "seen": (0, np.minimum(time, MAX_STEPS)),
        "next_restart": (0, pops.order.size - 1),
        "review": STEPS,
        "relearnt": (0, time),
    }


def model_kinds(arms: int, orders: tuple[int, ...], rewards: int, contexts: int) -> list[ModelKind]:
    """Return the models: constant arms, independent AR(1) arms, a damped rotation, each AR order."""
    forms = [(0, AR_STATE), (1, INDEPENDENT_AR1), (2, DAMPED_ROTATION), *((p, AR_STATE) for p in orders)]
    return [ModelKind(arms, p, form, rewards, contexts) for p, form in forms]


def population_priors(arms: int, orders: tuple[int, ...], contexts: int, learnt: Learnt) -> PopulationPriors:
    """Return the priors of the models of `model_kinds`, followed by the components of a learnt prior."""
    parts = next(iter(learnt.values()), ())
    kinds = {model: model_kinds(arms, orders, model, contexts) for model in (CONTINUOUS, BINARY)}
    own, count = len(kinds[CONTINUOUS]), len(kinds[CONTINUOUS]) + len(parts)
    size = max([coordinate_count(kind) for kind in kinds[CONTINUOUS]] + [len(part.mean) + contexts for part in parts])
    priors = PopulationPriors(
        log_weight=np.full((2, count), LOG_NO_WEIGHT),
        mean=np.zeros((2, count, size)),
        factor=np.zeros((2, count, size, size)),
        precision=np.zeros((2, count, size, size)),
        level=np.zeros((2, count, arms)),
        sign_log_odds=np.zeros((2, count, arms)),
        errors=np.zeros((2, count)),
        shock_variance=np.zeros((2, count)),
        is_permanent=np.zeros(count, dtype=bool),
    )
    for model in (CONTINUOUS, BINARY):
        for i, kind in enumerate(kinds[model]):
            prior = prior_of(kind)
            priors.log_weight[model, i] = prior.log_weight
            for j, (mean, sd) in enumerate([*prior.coordinates, *effect_prior(contexts)]):
                priors.mean[model, i, j], priors.factor[model, i, j, j] = mean, sd
                priors.precision[model, i, j, j] = sd**-2.0
    for model, parts in learnt.items():
        total = np.log(np.exp(priors.log_weight[model, :own]).sum() * (1.0 - DEFAULT_SHARE) / DEFAULT_SHARE)
        for i, part in enumerate(parts, own):
            place, d, cov = (model, i), len(part.mean), np.array(part.covariance)
            priors.log_weight[place] = total + math.log(part.weight)
            priors.mean[place][:d], priors.level[place][:] = part.mean, part.level
            priors.factor[place][:d, :d], priors.precision[place][:d, :d] = np.linalg.cholesky(cov), np.linalg.inv(cov)
            for j, (mean, sd) in enumerate(effect_prior(contexts), d):
                priors.mean[place][j], priors.factor[place][j, j], priors.precision[place][j, j] = mean, sd, sd**-2.0
            same = np.array(part.same_sign)
            priors.sign_log_odds[place][:] = np.log(same) - np.log1p(-same)
            priors.errors[place], priors.shock_variance[place] = part.errors, part.shock_sd**2
    return priors


def smc_init(
    arms: int,
    orders: tuple[int, ...],
    particles: int,
    memory: int,
    rewards: int,
    contexts: int,
    learnt: Learnt,
) -> SMCState:
    """Return the sampler before the first reward."""
    kinds, ring = model_kinds(arms, orders, CONTINUOUS, contexts), 2 * memory
    parts = next(iter(learnt.values()), ())
    kinds += [ModelKind(arms, part.order, STATIONARY_AR, CONTINUOUS, contexts) for part in parts]
    priors = population_priors(arms, orders, contexts, learnt)
    count, size = priors.mean.shape[1:]
    full, half = -(-particles // LANES), -(-particles // (2 * LANES))
    blocks = np.array([half if kind.p < 2 and i < 2 else full for i, kind in enumerate(kinds)])
    heights = np.array([field_offsets(kind).end for kind in kinds])
    ends = np.cumsum(blocks * heights)
    populations = Populations(
        order=np.array([kind.p for kind in kinds]),
        form=np.array([kind.form for kind in kinds]),
        top=ends - blocks * heights,
        blocks=blocks,
        alive=np.zeros(count, dtype=bool),
        moves_due=np.zeros(count, dtype=np.int64),
        born=np.zeros(count, dtype=np.int64),
        first=np.zeros(count, dtype=np.int64),
        next=np.zeros(count, dtype=np.int64),
        seen=np.zeros(count),
        prior_square=np.zeros(count),
        evidence=np.zeros(count),
        step_size=np.full(count, 0.5),
        mean=np.zeros((count, size)),
        precision=np.zeros((count, size, size)),
    )
    return SMCState(
        data=np.zeros((int(ends[-1]), LANES)),
        populations=populations,
        priors=priors,
        history=RewardHistory(
            arm=np.full(ring, -1),
            reward=np.zeros(ring),
            inflation=np.ones(ring),
            evidence=np.zeros(ring),
            context=np.zeros((ring, contexts)),
        ),
        draws=np.zeros(1, dtype=np.uint64),
        rewards=np.array([CONTINUOUS if rewards == DETECT else rewards, rewards, 0]),
        values=np.zeros(2),
        offset=np.array([0.0, 1.0]),
        time=np.zeros(1, dtype=np.int64),
        seen=np.zeros(1, dtype=np.int64),
        next_restart=np.zeros(1, dtype=np.int64),
        review=np.zeros(1, dtype=np.int64),
        relearnt=np.zeros(1, dtype=np.int64),
        context=np.zeros((1, contexts)),
        arms=arms,
    )
