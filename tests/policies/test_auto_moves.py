"""Auto's moves: which populations make them, and that they leave the posterior invariant."""

import numpy as np

import larl
from larl.policies.auto.layout import CONTINUOUS, ModelKind, coordinate_count, field_offsets
from larl.policies.auto.smc import MOVE_GAP
from larl.policies.auto.soa import LANES
from larl.worlds import Simulator
from tests.policies.test_auto import SMALL
from tests.stepping import decide, learn


def coordinates(smc, population):
    """Return the coordinates of a population's particles, one row for each."""
    pops = smc.populations
    kind = ModelKind(smc.arms, int(pops.order[population]), int(pops.form[population]), CONTINUOUS)
    fields, top = field_offsets(kind), pops.top[population]
    blocks = smc.data[top : top + fields.end * pops.blocks[population]].reshape(-1, fields.end, LANES)
    return np.moveaxis(blocks[:, : coordinate_count(kind)], 1, 2).reshape(blocks.shape[0] * LANES, -1)


def test_populations_far_behind_are_resampled_but_do_not_move():
    world = larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
    state, simulator = SMALL.init(2), Simulator(world, 3, 0)
    pops, copied, moved = state.smc.populations, 0, 0
    for t in range(150):
        gap = pops.evidence[pops.alive].max(initial=0.0) - pops.evidence
        before = [coordinates(state.smc, i) for i in range(pops.order.size)]
        alive, born = pops.alive.copy(), pops.born.copy()
        arm = decide(state, simulator.bits)
        learn(state, arm, simulator.reward(arm))
        simulator.advance(arm)
        for i in np.flatnonzero(alive & pops.alive & (born == pops.born)) if t > 0 else []:
            after = coordinates(state.smc, i)
            is_old = (after[:, None] == before[i]).all(axis=2).any(axis=1)
            if gap[i] > MOVE_GAP:
                assert is_old.all(), (t, i)
                copied += not np.array_equal(after, before[i])
            else:
                moved += not is_old.all()
    assert copied > 5  # they were resampled
    assert moved > 50
