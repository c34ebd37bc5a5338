"""A swarm: populations of particles that learn from one reward after another, within bounds of work and memory."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.layout import Kind, Rows, rows_of
from larl.policies.auto.moves import (
    LOST,
    Words,
    coordinates,
    derive_all,
    effective,
    move,
    next_word,
    resample,
    weigh,
)
from larl.policies.auto.particle_kalman import History, forward, step
from larl.policies.auto.proposal import Blocks, Normal, Prior, become_prior, fit
from larl.policies.auto.recovery import kind_of, largest_reward, recover, restart
from larl.policies.auto.soa import LANES, Floats

TEMPER, RESAMPLE = 0.25, 0.5  # effective share of particles under which a reward is taken in parts, and moves are made
MOVES = 3  # of each particle after it was resampled
ACCEPT = 0.35  # the share of accepted moves that the stride is steered to
NEGLIGIBLE = 7.0  # a population so many nats behind the best is given up
SETTLING = 20  # steps before any is given up
BUDGET = 1e6  # entries of covariances that the moves of one step may replay: some milliseconds


class Breed(NamedTuple):
    """A population before the first reward."""

    kind: Kind
    blocks: int  # of particles
    weight: float  # logarithm of its prior weight
    prior: Sequence[tuple[float, float]]  # mean and sd of each coordinate


class Populations(NamedTuple):
    """(populations, …) each."""

    order: NDArray[np.int64]
    form: NDArray[np.int64]
    alive: NDArray[np.bool_]
    evidence: Floats  # logarithm
    stride: Floats  # of the moves
    mean: Floats  # (·, coordinates) of the prior
    precision: Floats  # (·, coordinates, coordinates) of the prior
    later_mean: Floats  # of the prior of the next window
    later_precision: Floats


class Swarm(NamedTuple):
    data: Floats  # (blocks, rows, LANES)
    owner: Blocks
    due: NDArray[np.int64]  # (blocks,) moves still to be made
    populations: Populations
    history: History
    window: NDArray[np.int64]  # where the replayed rewards begin, where those of the next window do
    words: Words
    offset: Floats  # (1,) the first reward
    time: NDArray[np.int64]  # (1,)
    seen: NDArray[np.int64]  # (1,) rewards
    trial: Floats  # a block to work in
    normal: Normal  # scratch
    work: Floats  # scratch
    rows: Rows
    memory: int


def swarm_init(breeds: Sequence[Breed], arms: int, memory: int) -> Swarm:
    """Particles drawn from the priors of their populations: always the same."""
    rows, many = rows_of(arms, max(breed.kind.p for breed in breeds)), len(breeds)
    owner = np.repeat(np.arange(many), [breed.blocks for breed in breeds])
    data, size, draws = np.zeros((owner.size, rows.end, LANES)), rows.sign, np.random.default_rng(0)
    centre, precision = np.zeros((many, size)), np.zeros((many, size, size))
    for i, (_, blocks, weight, prior) in enumerate(breeds):
        mean, sd = np.array(prior).T
        centre[i, : len(prior)], precision[i, : len(prior), : len(prior)] = mean, np.diag(sd**-2.0)
        mine = owner == i
        data[mine, : len(prior)] = mean[:, None] + sd[:, None] * draws.normal(size=(blocks, len(prior), LANES))
        data[mine, rows.sign : rows.phi] = draws.choice([-1.0, 1.0], size=(blocks, arms, LANES))
        data[mine, rows.weight] = weight - math.log(blocks * LANES)
    order, form = np.array([breed.kind.p for breed in breeds]), np.array([breed.kind.form for breed in breeds])
    derive_all(data, owner, rows, order, form)
    populations = Populations(
        order,
        form,
        np.ones(many, dtype=bool),
        np.array([breed.weight for breed in breeds]),
        np.full(many, 0.5),
        centre,
        precision,
        centre.copy(),
        precision.copy(),
    )
    return Swarm(
        data,
        owner,
        np.zeros(owner.size, dtype=np.int64),
        populations,
        History(np.zeros(2 * memory, dtype=np.int64), np.zeros(2 * memory)),
        np.array([0, memory]),
        np.zeros(1, dtype=np.uint64),
        np.zeros(1),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((rows.end, LANES)),
        Normal(np.zeros(size), np.zeros((size, size))),
        np.zeros(size),
        rows,
        memory,
    )


@inner
def swarm_learn(state: Swarm, arm: int, reward: float) -> None:
    """Take in the reward of this step; time advances by one."""
    data, owner, pops, history, rows = state.data, state.owner, state.populations, state.history, state.rows
    t, size = state.time[0], history.arm.size
    if t == 0:
        state.offset[0] = reward
    history.arm[t % size], history.reward[t % size] = arm, reward - state.offset[0]
    largest = largest_reward(history, t)
    state.time[0] += 1
    for block in range(owner.size):
        step(data[block], rows, kind_of(pops, owner[block]), t, arm, history.reward[t % size], state.seen[0], largest)
    state.seen[0] += 1
    if recover(state, largest):
        restart(state)
        return
    budget, best = BUDGET, -1
    for mine in range(pops.order.size):
        if pops.alive[mine]:
            budget = take_in(state, mine, budget)
            if best < 0 or pops.evidence[mine] > pops.evidence[best]:
                best = mine
    if t >= SETTLING:
        for mine in range(pops.order.size):
            if pops.alive[mine] and pops.evidence[mine] < pops.evidence[best] - NEGLIGIBLE:
                pops.alive[mine] = False
                give(state, mine, best)
    for mine in range(pops.order.size):
        if pops.alive[mine]:
            budget = make_moves(state, mine, 1.0, budget)
    if state.time[0] % state.memory == 0:
        turn_window(state)


@inner
def swarm_update_missing(state: Swarm) -> None:
    """A step without a reward, after the first one: every filter moves on."""
    t = state.time[0]
    state.history.arm[t % state.history.arm.size] = -1
    state.time[0] += 1
    for block in range(state.owner.size):
        forward(state.data[block], state.rows, kind_of(state.populations, state.owner[block]), t + 1)
    if state.time[0] % state.memory == 0:
        turn_window(state)


@inner
def take_in(state: Swarm, mine: int, budget: float) -> float:
    """Take the last reward into the weights of a population, in parts where it says much; returns the budget left."""
    data, owner, rows, pops, part = state.data, state.owner, state.rows, state.populations, 0.0
    share, evidence = effective(data, owner, mine, rows, 1.0)
    while share < TEMPER and part < 0.98:
        low, high = 0.0, 1.0 - part
        for _ in range(10):
            middle = 0.5 * (low + high)
            share, _ = effective(data, owner, mine, rows, middle)
            if share < RESAMPLE:
                high = middle
            else:
                low = middle
        high = max(high, min(0.02, 1.0 - part))
        _, pops.evidence[mine] = effective(data, owner, mine, rows, high)
        weigh(data, owner, mine, rows, high)
        part += high
        renew(state, mine)
        budget = make_moves(state, mine, part, budget)
        share, evidence = effective(data, owner, mine, rows, 1.0 - part)
    weigh(data, owner, mine, rows, 1.0 - part)
    pops.evidence[mine] = evidence
    if share < RESAMPLE:
        renew(state, mine)
    return budget


@inner
def renew(state: Swarm, mine: int) -> None:
    """Resample a population; moves are due."""
    evidence = state.populations.evidence[mine]
    resample(state.data, state.owner, mine, state.rows, evidence, bits_to_uniform(next_word(state.words)))
    for block in range(state.owner.size):
        if state.owner[block] == mine:
            state.due[block] = MOVES


@inner
def make_moves(state: Swarm, mine: int, part: float, budget: float) -> float:
    """Make the moves that are due in a population while the budget lasts; returns what is left of it."""
    owner, due, rows, pops, time = state.owner, state.due, state.rows, state.populations, state.time[0]
    kind, prior, first = kind_of(pops, mine), Prior(pops.mean[mine], pops.precision[mine]), state.window[0]
    waiting, largest = 0, largest_reward(state.history, time - 1)
    for block in range(owner.size):
        if owner[block] == mine:
            waiting = max(waiting, due[block])
    if waiting == 0 or budget <= 0.0:
        return budget
    fit(state.data, owner, mine, rows, coordinates(rows, kind), pops.evidence[mine], state.normal)
    cost = (time - first) * (20.0 + (rows.arms + kind.p) ** 2)
    for _ in range(waiting):
        moved, many = 0.0, 0
        for i in range(owner.size):
            block = (i + time) % owner.size
            if owner[block] == mine and due[block] > 0 and budget > 0.0:
                budget -= cost
                due[block] -= 1
                share = move(
                    state.data[block],
                    state.trial,
                    rows,
                    kind,
                    prior,
                    state.normal,
                    state.work,
                    pops.stride[mine],
                    part,
                    state.history,
                    first,
                    state.window[1],
                    time,
                    state.seen[0],
                    largest,
                    state.words,
                )
                if share >= 0.0:
                    moved, many = moved + share, many + 1
        if many > 0:
            stride = pops.stride[mine] * math.exp(0.5 * (moved / many - ACCEPT))
            pops.stride[mine] = min(max(stride, 0.05), 0.98)
    return budget


@inner
def give(state: Swarm, mine: int, best: int) -> None:
    """Give the particles of a population to another, whose next resampling will fill them."""
    data, owner, rows, source = state.data, state.owner, state.rows, 0
    while owner[source] != best:
        source += 1
    for block in range(owner.size):
        if owner[block] == mine:
            owner[block], state.due[block] = best, 0
            for i in range(rows.end):
                for lane in range(LANES):
                    data[block, i, lane] = data[source, i, lane] if i != rows.weight else LOST


@inner
def turn_window(state: Swarm) -> None:
    """Every `memory` steps: the rewards before the last `memory` are not replayed any more.

    What they said is kept as each particle's filter at that time, and as a prior: the population of that time.
    """
    data, rows, pops, time, memory = state.data, state.rows, state.populations, state.time[0], state.memory
    height = rows.past - rows.mean
    for block in range(state.owner.size):
        for i in range(height):
            for lane in range(LANES):
                if time > memory:
                    data[block, rows.past + i, lane] = data[block, rows.later + i, lane]
                data[block, rows.later + i, lane] = data[block, rows.mean + i, lane]
    for mine in range(pops.order.size):
        if pops.alive[mine]:
            size = coordinates(rows, kind_of(pops, mine))
            if time > memory:
                for i in range(size):
                    pops.mean[mine, i] = pops.later_mean[mine, i]
                    for j in range(size):
                        pops.precision[mine, i, j] = pops.later_precision[mine, i, j]
            fit(data, state.owner, mine, rows, size, pops.evidence[mine], state.normal)
            become_prior(state.normal, size, pops.later_mean[mine], pops.later_precision[mine], state.work)
    state.window[0], state.window[1] = (time - memory if time > memory else 0), time
