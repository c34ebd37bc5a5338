"""Properties of every registered policy."""

import json
import math
import pickle
from dataclasses import fields

import numpy as np
import pytest
from numba.core.runtime import rtsys
from numba.core.runtime._nrt_python import memsys_enable_stats

import larl
from larl._core.random import policy_bits
from larl._core.states import copy_state
from larl.policies import REGISTRY, Policy, from_dict, from_json
from larl.worlds import Simulator
from tests.conftest import SPECS, THREE_ARMS, world_of
from tests.stepping import decide, learn

HORIZON, SEED = 60, 11


def trace(spec: Policy, trials: int = 3, **options: object) -> larl.Result:
    return larl.compare({"it": spec}, world_of(spec), horizon=HORIZON, trials=trials, seed=SEED, **options)


def fresh(spec: Policy, world: larl.LatentAR | None = None) -> tuple:
    return spec.init(3, horizon=HORIZON, world=world or world_of(spec))


def same(left: tuple, right: tuple) -> bool:
    """Return whether two States are equal bit for bit."""
    return all(
        same(a, b) if isinstance(a, tuple) else np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(left, right, strict=True)
    )


def test_stepping_by_hand_reproduces_engine_trial(spec):
    batched = trace(spec)
    for trial in range(3):
        state, simulator = fresh(spec), Simulator(world_of(spec), SEED, trial)
        for t in range(HORIZON):
            if isinstance(spec, larl.DynamicOracle):
                state.means[:] = simulator.means
            arm = decide(state, simulator.bits)
            reward = simulator.reward(arm)
            assert arm == batched.arm[0, trial, t]
            assert reward == batched.reward[0, trial, t].item()
            assert simulator.means.max() - simulator.means[arm] == batched.regret[0, trial, t].item()
            learn(state, arm, reward)
            simulator.advance()


def test_trials_are_independent_of_each_other(spec):
    # A trial that runs alone equals the same trial run after others in the same block.
    together = trace(spec, trials=4, threads=1, block=4)
    alone = trace(spec, trials=4, threads=1, block=1)
    assert together.data.identical(alone.data)


@pytest.mark.parametrize(("threads", "block"), [(1, 7), (2, 1), (2, 3), (3, None)])
def test_results_do_not_depend_on_threads_and_blocks(spec, threads, block):
    expected = trace(spec, trials=9, threads=1, block=9)
    assert trace(spec, trials=9, threads=threads, block=block).data.identical(expected.data)


def test_kernels_release_every_array(spec):
    # Callees of kernels count no references to arrays that they do not own (larl._core.numba_parts).
    memsys_enable_stats()
    trace(spec, threads=1)  # compiled
    before = rtsys.get_allocation_stats()
    trace(spec, threads=1)
    state = fresh(spec)
    for t in range(5):
        learn(state, decide(state, t), math.nan if t == 3 else 1.0)
    after = rtsys.get_allocation_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert after.alloc - before.alloc == after.free - before.free


def test_act_is_pure_and_update_changes_only_its_own_state(spec):
    state, other = fresh(spec), fresh(spec)
    untouched, rng = copy_state(other), np.random.default_rng(0)
    for t in range(HORIZON):
        before = copy_state(state)
        bits = int(policy_bits(SEED, 0, t))
        assert decide(state, bits) == decide(state, bits)
        assert same(state, before)
        learn(state, int(rng.integers(3)), float(rng.normal()))
    assert same(other, untouched)


def test_specs_round_trip_through_json(spec):
    assert from_json(spec.to_json()) == spec
    assert from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert hash(from_json(spec.to_json())) == hash(spec)


def test_invalid_value_can_be_pickled():
    with pytest.raises(larl.InvalidValue) as raised:
        larl.LARL(-1)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.name, copy.value) == (str(raised.value), "s", -1)


def test_error_messages_name_field_value_and_accepted_values():
    cases = [
        (lambda: larl.LARL(-1), "LARL: s = -1 is not usable; accepted: a whole number ≥ 0"),
        (lambda: larl.LARL(1.5), "LARL: s = 1.5 is not usable"),
        (lambda: larl.LARL(1, ridge=0.0), "LARL: ridge = 0.0 is not usable; accepted: a finite number and > 0"),
        (
            lambda: larl.Auto(orders=(2, 1)),
            "Auto: orders = (2, 1) is not usable; accepted: one or more whole numbers from 1 to 1000",
        ),
        (
            lambda: larl.Auto(orders=3),
            "Auto: orders = 3 is not usable; accepted: one or more whole numbers from 1 to 1000, in rising",
        ),
        (lambda: larl.Auto(memory=1), "Auto: memory = 1 is not usable; accepted: a whole number ≥ 10"),
        (lambda: larl.DiscountedUCB(1.5), "DiscountedUCB: discount = 1.5"),
        (lambda: larl.Exp3(reward_range=(1.0, 1.0)), "low < high"),
        (
            lambda: larl.BetaThompson((0.0, 1.0)),
            "BetaThompson: prior = (0.0, 1.0) is not usable; accepted: two numbers",
        ),
        (lambda: larl.LARLBIC(10), "explore = 10 is not usable; accepted: a whole number ≥ s_max + 2 = 17"),
        (lambda: larl.Rexp3(1.0).init(2), "Rexp3: horizon = None"),
        (lambda: larl.KalmanOracle().init(2), "KalmanOracle: world = None"),
        (lambda: larl.KalmanOracle().init(2, world=THREE_ARMS), "KalmanOracle: arms = 2 is not usable; accepted: 3"),
        (lambda: larl.LARL(1, radius="theory").init(2, horizon=9, world=THREE_ARMS), "LARL: arms = 2"),
        (lambda: from_json("[1]"), "JSON = [1]"),
        (lambda: from_json("[" * 200_000), "an object such as"),
        (lambda: larl.LARL(1, radius="theory").init(2), "LARL: radius = 'theory'"),
        (lambda: from_dict({"policy": "Larl", "s": 1}), "policy = 'Larl' is not usable; accepted: AR2, ARUCB"),
        (lambda: from_dict({"policy": "LARL"}), "LARL: s = None is not usable; accepted: a value"),
        (lambda: from_dict({"policy": "UCB", "s": 1}), "UCB: s = 1 is not usable; accepted: only the fields alpha"),
    ]
    for make, message in cases:
        with pytest.raises(larl.InvalidValue) as raised:
            make()
        assert message in str(raised.value)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_specs_are_frozen_and_documented(name):
    spec = next(spec for spec in SPECS if type(spec).__name__ == name)
    documentation = REGISTRY[name].__doc__ or ""
    assert not documentation.startswith(name + "(")
    assert "Examples\n" in documentation
    assert all(f"\n    {field.name} : " in documentation for field in fields(REGISTRY[name]))
    with pytest.raises(AttributeError):
        spec.anything = 1  # type: ignore[attr-defined]


DETERMINISTIC = [
    larl.LARL(0),
    larl.LARL(3),
    larl.LARL(2, radius="theory"),
    larl.LARL(2, radius="corrected"),
    larl.LARLBIC(20, s_max=4),
    larl.UCB(),
    larl.ARUCB(2),
    larl.SharedLARL(),
    larl.SharedLARL(2, window=15, modes=2),
    larl.SlidingWindowUCB(12),
    larl.DiscountedUCB(0.9),
    larl.KLUCB(reward_range=(-3.0, 3.0)),
    larl.DiscountedKLUCB(0.9, 3.0, (-3.0, 3.0)),
    larl.SlidingWindowLinUCB(2, window=15),
    larl.DiscountedLinUCB(2, 0.9),
    larl.KalmanOracle(),
    larl.KalmanOracle(filter="steady"),
    larl.KalmanUCB(0.5),
    larl.AdaptiveLARL(3),
]


@pytest.mark.parametrize("spec", DETERMINISTIC, ids=str)
def test_relabelling_arms_permutes_choices(spec):
    # The same history under two labellings, for policies that use neither chance nor the order of the arms.
    order = [2, 0, 1]  # new label → old label
    values = THREE_ARMS.to_dict()
    relabelled = larl.LatentAR.from_dict(
        values | {name: [values[name][old] for old in order] for name in ("beta", "mu")}
    )
    state, other, rng = fresh(spec), fresh(spec, relabelled), np.random.default_rng(4)
    compared = 0
    for t in range(HORIZON):
        if t >= 20:  # exploration and first plays are over
            assert order[decide(other, 0)] == decide(state, 0)
            compared += 1
        arm, reward = int(rng.integers(3)) if t >= 3 else t, float(rng.normal())
        learn(state, arm, reward)
        learn(other, order.index(arm), reward)
    assert compared == HORIZON - 20


def test_ties_go_to_the_first_arm():
    for spec in (larl.LARL(0), larl.UCB(), larl.SlidingWindowUCB(5), larl.DiscountedUCB(0.9), larl.LARL(1)):
        state = fresh(spec)
        if spec == larl.LARL(1):
            learn(state, 0, 0.0)  # its first step is random
        assert decide(state, 2**64 - 1) == 0
