"""Particles whose numbers are not finite are replaced, so that a State never keeps them.

The bounds in _particles.py and _lanes.py leave no way known to such numbers. Should one be found, or an agent be read
from a file that has them, a lost particle becomes a copy of another, a population that has lost all of its particles is
drawn anew from its prior and replays the rewards, and if no population is left all begin anew.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import bits_to_uniform
from larl.policies.auto.layout import Kind, Rows
from larl.policies.auto.moves import LOST, QUANTILES, Words, coordinates, derive, next_word
from larl.policies.auto.particle_kalman import History, fill, replay, step
from larl.policies.auto.soa import LANES, Floats, add_not_finite, copy

if TYPE_CHECKING:
    from larl.policies.auto.smc import Populations, Swarm
else:
    Populations = Swarm = Any


@inline
def kind_of(pops: Populations, mine: int) -> Kind:
    return Kind(pops.order[mine], pops.form[mine])


@inner
def largest_reward(history: History, t: int) -> float:
    """The size of the largest of the rewards less the first one, as far as they are known at step t."""
    largest = 0.0
    for i in range(min(t + 1, history.arm.size)):
        if history.arm[i] >= 0:
            largest = max(largest, abs(history.reward[i]))
    return largest


@inner
def replace_lost(state: Swarm, mine: int) -> bool:
    """Replace the lost particles of a population by copies that count for nothing; whether any was not lost."""
    data, owner, rows, source, place, best = state.data, state.owner, state.rows, -1, 0, -math.inf
    for block in range(owner.size):
        if owner[block] == mine:
            mark_lost(data[block], rows)
            for lane in range(LANES):
                if data[block, rows.one, lane] == 0.0 and data[block, rows.weight, lane] > best:
                    source, place, best = block, lane, data[block, rows.weight, lane]
    if source < 0:
        return False
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                if data[block, rows.one, lane] != 0.0:
                    for i in range(rows.end):
                        data[block, i, lane] = data[source, i, place]
                    data[block, rows.weight, lane] = LOST
    return True


@inline
def mark_lost(x: Floats, rows: Rows) -> None:
    """Set the row `one` to 0 where a particle is finite, and to nan elsewhere."""
    fill(x, rows.one, 0.0)
    for i in range(rows.mean, rows.past):
        add_not_finite(x, rows.one, i)
    for i in range(rows.before, rows.weight + 1):
        add_not_finite(x, rows.one, i)


@inner
def draw(x: Floats, rows: Rows, kind: Kind, first: int, mean: Floats, precision: Floats, words: Words) -> None:
    """Draw the particles of a block from a normal prior, of whose covariances only the diagonal counts.

    Of what was there, the beliefs at the beginning of the window stay, unless it begins at step 0.
    """
    for i in range(rows.end):
        if first == 0 or not rows.past <= i < rows.later:
            fill(x, i, 0.0)
    for lane in range(LANES):
        for i in range(coordinates(rows, kind)):
            sd = 1.0 / math.sqrt(precision[i, i])
            x[rows.theta + i, lane] = mean[i] + sd * QUANTILES[np.int64(next_word(words) & np.uint64(4095))]
        for arm in range(rows.arms):
            x[rows.sign + arm, lane] = 1.0 if bits_to_uniform(next_word(words)) < 0.5 else -1.0
    derive(x, rows, kind)


@inline
def share_evidence(state: Swarm, mine: int, evidence: float) -> None:
    """Give all particles of a population the same weight."""
    many = 0
    for block in range(state.owner.size):
        many += LANES if state.owner[block] == mine else 0
    for block in range(state.owner.size):
        if state.owner[block] == mine:
            fill(state.data[block], state.rows.weight, evidence - math.log(many))
            state.due[block] = 0
    state.populations.evidence[mine] = evidence


@inner
def rebuild(state: Swarm, mine: int, largest: float) -> None:
    """Draw the particles of a population anew and let them replay the rewards."""
    pops, rows, kind = state.populations, state.rows, kind_of(state.populations, mine)
    for block in range(state.owner.size):
        if state.owner[block] == mine:
            x, window, time, seen = state.data[block], state.window, state.time[0], state.seen[0]
            draw(x, rows, kind, window[0], pops.mean[mine], pops.precision[mine], state.words)
            replay(x, rows, kind, state.history, window[0], window[1], time, seen, largest)
    share_evidence(state, mine, pops.evidence[mine] if math.isfinite(pops.evidence[mine]) else 0.0)


@inner
def restart(state: Swarm) -> None:
    """All populations begin anew: the last reward is their first one."""
    pops, history, rows, last = state.populations, state.history, state.rows, state.time[0] - 1
    arm, reward = history.arm[last % history.arm.size], history.reward[last % history.arm.size]
    state.offset[0] += reward
    for i in range(history.arm.size):
        history.arm[i], history.reward[i] = -1, 0.0
    history.arm[0] = arm
    state.time[0], state.seen[0], state.window[0], state.window[1] = 1, 1, 0, state.memory
    for mine in range(pops.order.size):
        kind, size = kind_of(pops, mine), coordinates(rows, kind_of(pops, mine))
        for i in range(size):
            pops.later_mean[mine, i] = pops.mean[mine, i]
            for j in range(size):
                pops.later_precision[mine, i, j] = pops.precision[mine, i, j]
        for block in range(state.owner.size):
            if state.owner[block] == mine:
                x = state.data[block]
                draw(x, rows, kind, 0, pops.mean[mine], pops.precision[mine], state.words)
                step(x, rows, kind, 0, arm, 0.0, 0, 0.0)
                copy(x, rows.before, rows.after)
        share_evidence(state, mine, 0.0)


@inner
def recover(state: Swarm, largest: float) -> bool:
    """After a step of all filters: replace lost particles, rebuild lost populations; whether one could not be."""
    pops, whole = state.populations, True
    for mine in range(pops.order.size):
        if pops.alive[mine] and not replace_lost(state, mine):
            rebuild(state, mine, largest)
            whole = replace_lost(state, mine) and whole
    return not whole
