"""Auto's moves: how many a population makes after it was resampled."""

import numba
import numpy as np
import pytest

from larl.policies.auto.layout import field_offsets
from larl.policies.auto.populations import blocks_of, model_of
from larl.policies.auto.smc import MOVE_GAP, MOVED_STEPS, resample
from larl.policies.auto.state import MAX_MOVES, MIN_MOVES
from tests.policies.test_auto import SMALL
from tests.stepping import learn


@numba.njit
def resample_population(smc, population):
    fields = field_offsets(model_of(smc, population))
    resample(smc, population, blocks_of(smc, population, fields), fields)


@pytest.mark.parametrize("steps", [10, 60, 200])
def test_populations_far_behind_make_one_move(steps):
    state, rng = SMALL.init(2), np.random.default_rng(1)
    for t in range(steps):
        learn(state, t % 2, float(rng.normal()))
    pops = state.smc.populations
    best = int(np.argmax(np.where(pops.alive, pops.evidence, -np.inf)))
    pops.first[:], pops.next[:], pops.alive[:] = 0, steps, True
    shares = pops.evidence - pops.evidence[best]
    for population in set(range(pops.order.size)) - {best}:
        for gap in (MOVE_GAP - 0.1, MOVE_GAP + 0.1):
            pops.evidence[population] = pops.evidence[best] - gap
            resample_population(state.smc, population)
            usual = min(max(MOVED_STEPS // steps, MIN_MOVES), MAX_MOVES)
            assert pops.moves_due[population] == (usual if gap < MOVE_GAP else 1)
        pops.evidence[population] = pops.evidence[best] + shares[population]
