"""States behind addresses: their memory is kept, nothing is written outside, and their words mean what they say."""

import concurrent.futures
import ctypes
import gc
import multiprocessing
import pickle
from copy import copy, deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest

import larl
from larl._core.states import (
    Memory,
    check_fields,
    copy_state,
    has_nan,
    kind_of,
    leaves,
    loader,
    replace_arrays,
    share_fields,
    words_of,
)
from larl.policies import Policy
from larl.policies._pooling import shared_fields
from larl.simulation.engine import Simulation, empty_trace
from tests.conftest import world_of


class Inner(NamedTuple):
    count: Any
    flag: bool


class Outer(NamedTuple):
    matrix: Any
    inner: Inner
    table: Any
    mask: Any
    size: int
    scale: float


share_fields(Outer, ("table",))


def example() -> Outer:
    inner = Inner(np.arange(3), True)
    return Outer(np.arange(6.0).reshape(2, 3), inner, np.ones(4), np.array([True, False]), -7, 0.1)


def test_memory_copies_what_changes_and_shares_constants() -> None:
    state = example()
    memory = Memory(state, 3)
    memory.state(1).matrix[0, 0] = 9.0
    memory.state(2).inner.count[:] = 5
    assert state.matrix[0, 0] == memory.state(0).matrix[0, 0] == 0.0
    assert memory.stacked().matrix[:, 0, 0].tolist() == [0.0, 9.0, 0.0]
    assert memory.stacked().inner.count.tolist() == [[0, 1, 2], [0, 1, 2], [5, 5, 5]]
    assert all(memory.state(unit).table is state.table for unit in range(3))
    assert (memory.state(0).size, memory.state(0).scale, memory.state(0).inner.flag) == (-7, 0.1, True)
    assert all(each.array.ctypes.data % 64 == 0 for each in leaves(memory.state(1)) if not each.is_constant)
    copied = memory.copy()
    copied.state(1).matrix[:] = -1.0
    assert memory.state(1).matrix[0, 0] == 9.0
    assert memory.guards_are_intact()
    assert copied.guards_are_intact()


def test_shared_fields_exist_once() -> None:
    memory = Memory(example(), 4, lambda kind: ("matrix",) if kind is Outer else ())
    memory.state(3).matrix[1, 1] = 8.0
    assert memory.state(0).matrix[1, 1] == 8.0
    assert memory.stacked().matrix.shape == (2, 3)
    copied = memory.copy()
    assert (copied.words[:, 0] == copied.words[0, 0]).all()
    assert copied.words[0, 0] != memory.words[0, 0]


@pytest.mark.parametrize("make", [lambda state: words_of(state), lambda state: Memory(state).words[0]])
def test_words_describe_the_state(make: Any) -> None:
    """The words of a copy, read back as addresses, sizes and numbers, without the code that compiled functions use."""
    state = example()
    memory = Memory(state)
    words = memory.words[0].tolist()
    address, rows, columns, *strides = words[:5]
    assert (rows, columns, strides) == (2, 3, [24, 8])
    assert list((ctypes.c_double * 6).from_address(address)) == list(range(6))
    assert words[8] == 1  # inner.flag, after the address, shape and stride of inner.count
    assert words[-2] == -7
    assert np.int64(words[-1]).view(np.float64) == 0.1
    assert make(state).size == len(words)


def test_arrays_in_any_order_and_type_are_taken() -> None:
    turned = example()._replace(matrix=np.asfortranarray(np.arange(6.0).reshape(2, 3)), table=np.arange(8.0)[::2])
    assert Memory(turned).state().matrix.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert Memory(turned).state().matrix.flags.c_contiguous


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("matrix", [1.0], r"State\.matrix is \[1\.0\], not an array, a NamedTuple or a number"),
        ("matrix", None, r"State\.matrix is None"),
        ("size", 2**70, r"State\.size is 1180591620717411303424"),
        ("table", np.array(["a"]), r"State\.table is an array of <U1 with 1 dimensions; accepted: float64"),
        ("table", np.array([None]), r"State\.table is an array of object with 1 dimensions; accepted: float64"),
        ("table", np.zeros(2, np.float32), r"State\.table is an array of float32 with 1 dimensions; accepted: float64"),
        ("table", np.array(3.0), r"State\.table is an array of float64 with 0 dimensions"),
        ("inner", (1, 2), r"State\.inner is \(1, 2\), not a NamedTuple"),
    ],
)
def test_fields_that_cannot_be_compiled_are_refused_by_name(field: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_fields(example()._replace(**{field: value}), "State")


def test_nan_is_found_where_it_is_looked_for() -> None:
    state = example()
    assert not has_nan(state)
    state.matrix[1, 2] = np.nan
    assert has_nan(state)
    auto = larl.Auto(orders=(1,), particles=16).init(2)
    next(each.array for each in leaves(auto) if not each.is_checked and each.array.dtype == np.float64)[...] = np.nan
    assert not has_nan(auto)  # `replace_nonfinite` repairs particles; mean and score show what remains


def test_every_policy_stays_inside_its_memory(spec: Policy) -> None:
    """Guards around all arrays, of own and of shared blocks, after huge, missing and repeated rewards."""
    world, draws = world_of(spec), np.random.default_rng(0)
    initial = spec.init(3, horizon=60, world=world)
    memories = [Memory(initial)]
    if shared_fields(type(initial)):
        memories.append(Memory(initial, 2, shared_fields))
    from tests.stepping import learn

    for memory in memories:
        for t in range(60):
            for unit in range(memory.units):
                reward = (draws.normal(), 1e100, np.nan, 0.0)[t % 4]
                learn(memory.state(unit), int(draws.integers(3)), float(reward))
        assert memory.guards_are_intact()


def test_write_outside_an_array_is_seen() -> None:
    memory = Memory(example())
    memory.own[0, 6] = 1  # after the six numbers of `matrix`
    assert not memory.guards_are_intact()


def simulate(seed: int) -> float:
    world = larl.worlds.paper(1)
    simulation = Simulation(world.latent(), larl.LARL(2).init(2))
    sums = np.zeros((4, 1))
    gc.collect()
    simulation.run_trials(seed, 0, np.array([49]), sums, empty_trace(4, 50))
    return float(sums.sum())


@pytest.fixture
def only_new_garbage() -> None:
    """Let the collector ignore the objects of earlier tests, mostly numba's: to visit them takes a second."""
    gc.freeze()


@pytest.mark.usefixtures("only_new_garbage")
def test_memory_outlives_everything_else() -> None:
    """Garbage is collected between calls; agents keep deciding after their policy, world and decisions are gone."""
    agents = [larl.Agent(larl.LARL(2), 2, seed=seed) for seed in range(3)]
    alone = larl.Agent(larl.LARL(2), 2, seed=1)
    for t in range(120):
        waste = [np.random.default_rng(t).normal(size=1000) for _ in range(20)]
        decisions = [agent.decide() for agent in agents]
        del waste
        if t % 20 == 0:
            gc.collect()
        for agent, decision in zip(agents, decisions, strict=True):
            agent.observe(decision, float(t % 5))
        assert alone.decide() == decisions[1]
        alone.observe(decisions[1], float(t % 5))
    restored = larl.Agent.unpack(agents[1].pack())
    del agents
    gc.collect()
    assert restored.decide() == alone.decide()


COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": deepcopy, "copy": copy}


@pytest.mark.parametrize("how", COPIES)
def test_copies_have_memory_of_their_own(how: str) -> None:
    """A copy continues as the original does, also after that is gone, and changes nothing in it."""
    originals = [
        larl.Agent(larl.LARL(2), 2, seed=3),
        larl.Cohort(larl.LARL(2), 2, seed=3, pooling="full"),
        larl.worlds.Simulator(larl.worlds.paper(1), 0, 0),
    ]

    def following(agent: Any, cohort: Any, simulator: Any) -> Any:
        decisions = []
        for t in range(9):
            decisions += [agent.decide(), cohort.decide("it")]
            agent.observe(decisions[-2], float(t % 3))
            cohort.observe(decisions[-1], float(t % 3))
            simulator.advance()
        return decisions, agent.decide(), simulator.means.tolist()

    following(*originals)
    copies = [COPIES[how](each) for each in originals]
    wanted = following(*originals)
    originals.clear()
    gc.collect()
    assert following(*copies) == wanted


def test_memory_refuses_to_be_copied_with_its_addresses() -> None:
    with pytest.raises(TypeError, match="a Memory cannot be pickled"):
        deepcopy(Memory(example()))


@pytest.mark.usefixtures("only_new_garbage")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_get_the_results_of_this_process(method: str) -> None:
    wanted = [simulate(seed) for seed in range(3)]
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(simulate, range(3))) == wanted


@pytest.mark.usefixtures("only_new_garbage")
def test_threads_get_the_results_of_one_thread() -> None:
    wanted = [simulate(seed) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(simulate, range(8))) == wanted


def test_loader_has_a_python_twin() -> None:
    """What uncompiled code reads at an address is the State (NUMBA_DISABLE_JIT)."""
    from larl._core.states import _read_state, _words_at

    state = example()
    words = words_of(state)
    read = _read_state(kind_of(state), iter(_words_at(words.ctypes.data)))
    assert read.matrix.tolist() == state.matrix.tolist()
    assert (read.inner.flag, read.size, read.scale) == (True, -7, 0.1)
    read.mask[1] = True
    assert state.mask.tolist() == [True, True]
    assert callable(loader(kind_of(state)))


def test_copy_and_replacement_keep_constants() -> None:
    state = example()
    copied = copy_state(state)
    assert copied.table is state.table
    assert copied.matrix is not state.matrix
    arrays = [each.array for each in leaves(state)]
    assert replace_arrays(state, iter(arrays)).inner.count is state.inner.count
