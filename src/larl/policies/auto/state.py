"""The State of Auto's sequential Monte Carlo sampler, and the particles that it starts with."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.policies._bounds import MAX_STEPS, STEPS, Bound
from larl.policies.auto.layout import FieldOffsets, ModelKind, field_offsets
from larl.policies.auto.moves import DrawCounter, to_parameters_all
from larl.policies.auto.particle_kalman import RewardHistory
from larl.policies.auto.proposal import BlockOwners, GaussianProposal
from larl.policies.auto.soa import LANES, Floats

MOVES_PER_RESAMPLE = 3  # Metropolis steps of each particle after it was resampled


class PopulationPrior(NamedTuple):
    """A population before the first reward."""

    kind: ModelKind
    blocks: int  # number of blocks of LANES particles
    log_weight: float  # of the population under the prior
    coordinates: Sequence[tuple[float, float]]  # prior mean and sd of each coordinate


class Populations(NamedTuple):
    """One entry per population in every array."""

    order: NDArray[np.int64]
    form: NDArray[np.int64]
    alive: NDArray[np.bool_]
    evidence: Floats  # logarithm
    step_size: Floats  # of the moves
    mean: Floats  # (·, coordinates) of the prior
    precision: Floats  # (·, coordinates, coordinates) of the prior
    next_mean: Floats  # of the prior of the next window
    next_precision: Floats


class SMCState(NamedTuple):
    data: Floats  # (blocks, rows, LANES), see layout.py
    owner: BlockOwners
    moves_due: NDArray[np.int64]  # (blocks,) moves that are still to be made
    populations: Populations
    history: RewardHistory
    window: NDArray[np.int64]  # (2,) first step that is replayed, first step of the next window
    draws: DrawCounter
    offset: Floats  # (1,) the first reward
    time: NDArray[np.int64]  # (1,)
    seen: NDArray[np.int64]  # (1,) number of observed rewards
    candidate: Floats  # scratch block for the moves
    proposal: GaussianProposal  # scratch
    work: Floats  # scratch
    fields: FieldOffsets
    memory: int


def smc_bounds(initial: SMCState, state: SMCState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers.

    `reassign` finds a block of every living population, and `replay_filter` replays from the window of this time.
    """
    pops, memory, time = initial.populations, initial.memory, int(state.time[0])
    owns = np.isin(np.arange(pops.order.size), state.owner)
    window = [max(time // memory - 1, 0) * memory, max(time // memory, 1) * memory]
    return {
        "owner": (0, pops.order.size - 1),
        "moves_due": (0, MOVES_PER_RESAMPLE),
        "populations.order": (pops.order, pops.order),
        "populations.form": (pops.form, pops.form),
        "populations.alive": (owns, owns),
        "history.arm": (-1, initial.fields.arms - 1),
        "window": (window, window),
        "draws": (0, 2**63 - 1),
        "time": STEPS,
        "seen": (0, min(time, MAX_STEPS)),
    }


def smc_init(priors: Sequence[PopulationPrior], arms: int, memory: int) -> SMCState:
    """Return particles drawn from the priors of their populations, with a fixed seed."""
    fields, count = field_offsets(arms, max(each.kind.p for each in priors)), len(priors)
    owner = np.repeat(np.arange(count), [each.blocks for each in priors])
    data, size, rng = np.zeros((owner.size, fields.end, LANES)), fields.sign, np.random.default_rng(0)
    centre, precision = np.zeros((count, size)), np.zeros((count, size, size))
    for i, (_, blocks, log_weight, coordinates) in enumerate(priors):
        mean, sd = np.array(coordinates).T
        own, used = owner == i, len(coordinates)
        centre[i, :used], precision[i, :used, :used] = mean, np.diag(sd**-2.0)
        data[own, :used] = mean[:, None] + sd[:, None] * rng.normal(size=(blocks, used, LANES))
        data[own, fields.sign : fields.phi] = rng.choice([-1.0, 1.0], size=(blocks, arms, LANES))
        data[own, fields.log_weight] = log_weight - math.log(blocks * LANES)
    order, form = np.array([each.kind.p for each in priors]), np.array([each.kind.form for each in priors])
    to_parameters_all(data, owner, fields, order, form)
    populations = Populations(
        order=order,
        form=form,
        alive=np.ones(count, dtype=bool),
        evidence=np.array([each.log_weight for each in priors]),
        step_size=np.full(count, 0.5),
        mean=centre,
        precision=precision,
        next_mean=centre.copy(),
        next_precision=precision.copy(),
    )
    return SMCState(
        data=data,
        owner=owner,
        moves_due=np.zeros(owner.size, dtype=np.int64),
        populations=populations,
        history=RewardHistory(np.zeros(2 * memory, dtype=np.int64), np.zeros(2 * memory)),
        window=np.array([0, memory]),
        draws=np.zeros(1, dtype=np.uint64),
        offset=np.zeros(1),
        time=np.zeros(1, dtype=np.int64),
        seen=np.zeros(1, dtype=np.int64),
        candidate=np.zeros((fields.end, LANES)),
        proposal=GaussianProposal(np.zeros(size), np.zeros((size, size))),
        work=np.zeros(size),
        fields=fields,
        memory=memory,
    )
