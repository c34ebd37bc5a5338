"""The State of Auto's sequential Monte Carlo sampler, before the first reward."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies._bounds import MAX_STEPS, STEPS, Bound
from larl.policies.auto.layout import (
    AR_STATE,
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    ModelKind,
    coordinate_count,
    field_offsets,
)
from larl.policies.auto.parameters import prior_of
from larl.policies.auto.replay import RewardHistory
from larl.policies.auto.soa import LANES, Floats

MIN_MOVES, MAX_MOVES = 3, 12  # Metropolis steps of each particle after it was resampled
DrawCounter = NDArray[np.uint64]  # (1,) number of 64-bit draws so far
DETECT = -1  # the observation model is chosen from the rewards


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
    start_mean: Floats  # (observation models, ·, coordinates) of the prior of a new population
    start_sd: Floats  # (observation models, ·, coordinates) of the same
    start_weight: Floats  # (observation models, ·) log prior weight


class SMCState(NamedTuple):
    data: Floats  # (rows of all blocks, LANES), see layout.py
    populations: Populations
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
    arms: int


def smc_bounds(initial: SMCState, state: SMCState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    pops, time = initial.populations, int(state.time[0])
    size = initial.history.arm.size
    oldest = max(time - size, 0)
    return {
        "populations.order": (pops.order, pops.order),
        "populations.form": (pops.form, pops.form),
        "populations.top": (pops.top, pops.top),
        "populations.blocks": (pops.blocks, pops.blocks),
        "populations.alive": (0, 1),
        "populations.moves_due": (0, MAX_MOVES),
        "populations.born": (0, max(time, 0)),
        "populations.first": (np.where(state.populations.alive, oldest, 0), max(time, 0)),
        "populations.next": (np.where(state.populations.alive, time, 0), max(time, 0)),
        "history.arm": (-1, initial.arms - 1),
        "draws": (0, 2**63 - 1),
        "rewards": ([CONTINUOUS, int(initial.rewards[1]), 0], [BINARY, int(initial.rewards[1]), 3]),
        "time": STEPS,
        "seen": (0, min(time, MAX_STEPS)),
        "next_restart": (0, pops.order.size - 1),
        "review": STEPS,
        "relearnt": (0, max(time, 0)),
    }


def model_kinds(arms: int, orders: tuple[int, ...], rewards: int) -> list[ModelKind]:
    """Return the models: constant arms, independent AR(1) arms, a damped rotation, each AR order."""
    forms = [(0, AR_STATE), (1, INDEPENDENT_AR1), (2, DAMPED_ROTATION), *((p, AR_STATE) for p in orders)]
    return [ModelKind(arms, p, form, rewards) for p, form in forms]


def smc_init(arms: int, orders: tuple[int, ...], particles: int, memory: int, rewards: int) -> SMCState:
    """Return the sampler before the first reward."""
    kinds, ring = model_kinds(arms, orders, CONTINUOUS), 2 * memory
    count, size = len(kinds), max(coordinate_count(kind) for kind in kinds)
    full, half = -(-particles // LANES), -(-particles // (2 * LANES))
    blocks = np.array([half if kind.p < 2 and i < 2 else full for i, kind in enumerate(kinds)])
    heights = np.array([field_offsets(kind).end for kind in kinds])
    ends = np.cumsum(blocks * heights)
    start_mean, start_sd, start_weight = np.zeros((2, count, size)), np.ones((2, count, size)), np.zeros((2, count))
    for model in (CONTINUOUS, BINARY):
        for i, kind in enumerate(model_kinds(arms, orders, model)):
            prior = prior_of(kind)
            mean, sd = np.array(prior.coordinates).T
            start_mean[model, i, : mean.size], start_sd[model, i, : mean.size] = mean, sd
            start_weight[model, i] = prior.log_weight
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
        start_mean=start_mean,
        start_sd=start_sd,
        start_weight=start_weight,
    )
    return SMCState(
        data=np.zeros((int(ends[-1]), LANES)),
        populations=populations,
        history=RewardHistory(np.full(ring, -1), np.zeros(ring), np.ones(ring), np.zeros(ring)),
        draws=np.zeros(1, dtype=np.uint64),
        rewards=np.array([CONTINUOUS if rewards == DETECT else rewards, rewards, 0]),
        values=np.zeros(2),
        offset=np.array([0.0, 1.0]),
        time=np.zeros(1, dtype=np.int64),
        seen=np.zeros(1, dtype=np.int64),
        next_restart=np.zeros(1, dtype=np.int64),
        review=np.zeros(1, dtype=np.int64),
        relearnt=np.zeros(1, dtype=np.int64),
        arms=arms,
    )
