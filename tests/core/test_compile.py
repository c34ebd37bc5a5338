"""The cache of machine code is never stale, policies from outside larl work, and sources also run uncompiled."""

import gc
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event

import larl
from larl._core.compile import CollectorPause, has_implementation
from larl._core.kernel_cache import SOURCES, digest_of
from larl._core.states import kind_of, loader
from larl.policies import Policy, bind, register
from larl.policies._contract import SHARED_FIELDS, act
from tests.conftest import SPECS, THREE_ARMS, world_of
from tests.waiting import HANGS

PACKAGE = Path(larl.__file__).parent
# An agent, because its kernels compile in a fifth of the time of a comparison's. Both use the same cache.
DECISIONS = "import larl; agent = larl.Agent(larl.{}(), 2); print([agent.decide().arm for _ in range(4)])"


def run_python(code: str, warnings: str = "error", **environment: str) -> str:
    """Standard output of a new Python process that must succeed."""
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
        env=os.environ | environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digest_covers_every_source_with_kernels():
    covered = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    for path in PACKAGE.rglob("*.py"):
        if re.search(
            r"^(@(kernel|inner|inline|generic)\b|implement\()",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            assert path in covered, f"{path.name} compiles functions: add it to SOURCES"


def test_changed_policy_is_compiled_again(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "larl", ignore=shutil.ignore_patterns("__pycache__"))
    code = DECISIONS.format("RoundRobin")
    settings = {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_python(code, **settings).strip() == "['0', '1', '0', '1']"
    before = set((tmp_path / "cache").rglob("*.o"))
    assert before
    source = tmp_path / "src" / "larl" / "policies" / "round_robin.py"
    text = source.read_text(encoding="utf-8")
    assert "state.time[0] % state.arms" in text
    source.write_text(text.replace("state.time[0] % state.arms", "(state.time[0] + 1) % state.arms"), encoding="utf-8")
    assert run_python(code, **settings).strip() == "['1', '0', '1', '0']"
    new = set((tmp_path / "cache").rglob("*.o")) - before
    assert len(new) == 2  # what simulations need and what agents need; nothing else is compiled again


def test_larl_runs_without_writable_cache_folder(tmp_path):
    (tmp_path / "file").write_text("in the way")
    printed = run_python(DECISIONS.format("RoundRobin"), NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert printed.strip() == "['0', '1', '0', '1']"


def test_import_loads_no_heavy_packages():
    heavy = "'xarray', 'pandas', 'matplotlib', 'scipy', 'numba', 'typer'"
    assert run_python(f"import larl, sys; print([m for m in ({heavy}) if m in sys.modules])").strip() == "[]"
    heavy = "'xarray', 'pandas', 'matplotlib', 'scipy.linalg', 'typer'"
    code = f"import larl, sys; larl.LARL(3); larl.worlds.paper(1); print([m for m in ({heavy}) if m in sys.modules])"
    assert run_python(code).strip() == "[]"


COMPARE = "result = larl.compare({'it': larl.UCB()}, larl.worlds.paper(1), horizon=5, trials=2);"


# numba imports scipy.linalg before it loads the first function, and xarray dask.array, if it is installed, before it
# makes the first dataset.
@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("larl.Agent(larl.RoundRobin(), 2).decide()", "'xarray', 'pandas', 'matplotlib', 'dask'"),
        ("larl.theory", "'xarray', 'pandas', 'matplotlib', 'scipy.linalg', 'scipy.special'"),
        (f"{COMPARE} str(result.summary())", "'matplotlib', 'distributed', 'scipy.io', 'narwhals'"),
        (f"{COMPARE} result.save('run.nc')", "'matplotlib', 'distributed', 'narwhals'"),
    ],
)
def test_process_loads_only_what_it_uses(tmp_path, code, heavy):
    code = f"import larl, os, sys; os.chdir({str(tmp_path)!r}); {code}"
    assert run_python(f"{code}; print([m for m in ({heavy}) if m in sys.modules])").strip() == "[]"


def test_collector_is_paused_while_numba_compiles_and_then_as_before():
    enabled = []

    class Record(event.Listener):
        def on_start(self, event):
            enabled.append(gc.isenabled())

        on_end = on_start

    with event.install_listener("numba:compile", Record()):
        inner = numba.njit(lambda x: x + 1.0)
        assert numba.njit(lambda x: inner(x) + 1.0)(0.5) == 2.5  # `inner` is compiled while its caller is
        assert enabled == [False, False, False, True]  # a listener is called after CollectorPause
        with pytest.raises(numba.TypingError):
            numba.njit(lambda x: x.nothing)(0.5)
        assert gc.isenabled()
        gc.disable()
        try:
            numba.njit(lambda x: x - 1.0)(0.5)
            assert not gc.isenabled()
        finally:
            gc.enable()
    assert len(enabled) == 8


def test_collector_is_paused_until_the_last_thread_has_compiled():
    pause = CollectorPause()
    for depth in range(3):
        pause.on_start(None)
        assert not gc.isenabled(), depth
    for depth in range(3):
        assert not gc.isenabled(), depth
        pause.on_end(None)
    assert gc.isenabled()


def test_process_ends_without_a_last_collection():
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_count()[0] < 100 < gc.get_freeze_count()));"
    assert run_python(f"{code} import larl; larl.LARL(3)").strip() == "True"


def one_for_each_state() -> dict[str, Policy]:
    """One policy for each type of State. CohortAuto takes half a minute uncompiled; its parts are compared."""
    specs = [spec for spec in reversed(SPECS) if world_of(spec) == THREE_ARMS and not isinstance(spec, larl.CohortAuto)]
    kinds = {kind_of(spec.init(3, horizon=30, world=THREE_ARMS)): spec for spec in specs}
    return {str(spec): spec for spec in kinds.values()}


def play_each_state() -> larl.Result:
    return larl.compare(one_for_each_state(), THREE_ARMS, horizon=30, trials=1, seed=3, threads=1, progress=False)


def test_uncompiled_results_equal_compiled_results(tmp_path):
    # Arms are equal, numbers only up to rounding: Python's logarithm can differ from the compiler's in the last bit.
    code = f"from tests.core.test_compile import play_each_state; play_each_state().save({str(tmp_path / 'plain')!r})"
    run_python(code, NUMBA_DISABLE_JIT="1")
    compiled, plain = play_each_state(), larl.load(tmp_path / "plain")
    assert np.array_equal(compiled.arm, plain.arm)
    assert np.allclose(compiled.regret, plain.regret, rtol=1e-9, atol=1e-12)


OUTSIDE = """
from dataclasses import dataclass
from typing import NamedTuple
from larl.policies import Policy, register

class FixedState(NamedTuple):
    arms: int

def act(state, bits):
    return {arm}

def update(state, arm, reward):
    pass

def probabilities(state, available, out):
    for arm in range(out.size):
        out[arm] = 1.0 if arm == {arm} else 0.0

@register(FixedState, act, update, action_probabilities=probabilities)
@dataclass(frozen=True)
class Fixed(Policy):
    def init(self, arms, **_):
        return FixedState(arms)
"""


@pytest.fixture(autouse=True)
def forget_fixed():
    yield
    larl.policies.REGISTRY.pop("Fixed", None)


def test_policy_from_outside_larl_is_cached_until_it_is_edited(tmp_path):
    code = "import larl, outside; print(larl.Agent(outside.Fixed(), 2).decide().arm)"
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    settings["PYTHONDONTWRITEBYTECODE"] = "1"  # bytecode counts as new if the file was edited in the same second
    for arm, files in ((0, 2), (0, 2), (1, 4)):
        (tmp_path / "outside.py").write_text(OUTSIDE.format(arm=arm))
        assert run_python(code, **settings).strip() == str(arm)
        assert len(list((tmp_path / "cache").rglob("*.o"))) == files
    (tmp_path / "outside.py").unlink()
    printed = run_python(DECISIONS.format("RoundRobin"), **settings)
    assert printed.strip() == "['0', '1', '0', '1']"  # the cache does not refer to the deleted module


CONSTANTS = """
from enum import IntEnum
import numpy as np
import numba
import package.inner as parts
from mathematics import level

class Step(IntEnum):
    SIZE = {size}

LARGE = np.full(200_000, {large})  # numba does not copy arrays above a megabyte into the code
PAIR = (np.array([{pair}]), 1.0)

@numba.njit(error_model="{error_model}")
def ratio(total):
    return 1.0 / total
"""
USES = """
    scratch = np.zeros(3)  # needs numba's allocator
    scratch[0] = Step.SIZE.value
    scratch[1] = LARGE[7]
    scratch[2] = PAIR[0][0]
    state.total[arm] = scratch.sum() + parts.deeper.tenth() + level() + ratio(1.0)
"""


def test_constants_and_helpers_of_own_functions_are_part_of_the_digest(tmp_path):
    """Each of them is changed in turn. A process that finds everything compiled gets the same as the one before."""
    used = OUTSIDE.replace("    pass", USES).replace("arms: int", "total: np.ndarray").format(arm=0)
    used = used.replace("return FixedState(arms)", "return FixedState(np.zeros(arms))")
    values = {"size": 1, "large": 2.0, "pair": 0.123456789012, "error_model": "python", "tenth": 0.1, "level": 5.0}
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    code = """
import larl, outside
from larl.simulation.engine import Simulation, empty_trace
import numpy as np
simulation = Simulation(larl.worlds.paper(1).latent(), outside.Fixed().init(2))
simulation.run_trials(0, 0, np.array([3]), np.zeros((1, 1)), empty_trace(1, 4))
print(repr(float(simulation.stacked().total[0, 0])))
"""
    (tmp_path / "package" / "inner" / "deeper").mkdir(parents=True)
    changes = [{}, {}, {"size": 3, "large": 4.0}, {"pair": 0.123456789013}, {"tenth": 0.2}, {"level": 6.0}]
    for change in changes:
        values |= change
        (tmp_path / "package" / "__init__.py").touch()
        (tmp_path / "package" / "inner" / "__init__.py").write_text("import package.inner.deeper as deeper")
        function = "import numba\n@numba.njit\ndef {}():\n    return {}"
        deeper = tmp_path / "package" / "inner" / "deeper" / "__init__.py"
        deeper.write_text(function.format("tenth", values["tenth"]))
        (tmp_path / "mathematics.py").write_text(function.format("level", values["level"]))
        (tmp_path / "outside.py").write_text(CONSTANTS.format(**values) + used)
        wanted = values["size"] + values["large"] + values["pair"] + values["tenth"] + values["level"] + 1.0
        assert float(run_python(code, **settings)) == pytest.approx(wanted, rel=1e-15), change


def test_helper_with_other_options_has_another_digest():
    fast, slow = (numba.njit(error_model=model)(lambda x: 1.0 / x) for model in ("numpy", "python"))
    digests = []
    for ratio in (fast, slow):
        ratio.py_func.__code__ = fast.py_func.__code__
        scope = {"ratio": ratio}
        exec("def use(x):\n    return ratio(x)", scope)
        digests.append(digest_of(scope["use"], ()))
    assert digests[0] != digests[1]


def test_layout_of_a_state_is_part_of_the_digest_of_what_reads_it():
    class One(NamedTuple):
        left: int
        right: int

    class Other(NamedTuple):
        right: int
        left: int

    digests = []
    for state in (One(1, 2), Other(1, 2)):
        scope = {"load": loader(kind_of(state))}
        exec("def use(words):\n    return load(words).left", scope)
        digests.append(digest_of(scope["use"], ()))
    assert digests[0] != digests[1]


def test_uncompiled_agents_apply_the_rules_of_their_deployment():
    code = (
        "import larl; agent = larl.Agent(larl.LARL(s=1), ['x', 'y'], warm_up=5, "
        "warm_up_probabilities={'x': 0.3, 'y': 0.7}); print(agent.decide().probabilities)"
    )
    assert run_python(code, NUMBA_DISABLE_JIT="1").strip() == "{'x': 0.3, 'y': 0.7}"


def test_damaged_machine_code_is_compiled_again(tmp_path):
    settings = {"NUMBA_CACHE_DIR": str(tmp_path)}
    run_python(DECISIONS.format("RoundRobin"), **settings)
    first, second = tmp_path.rglob("*.o")
    good = first.read_bytes()
    for damaged in (good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1])):
        first.write_bytes(damaged)
        second.write_bytes(b"")
        assert run_python(DECISIONS.format("RoundRobin"), **settings).strip() == "['0', '1', '0', '1']"
        assert all(each.read_bytes().startswith(good[:13]) for each in (first, second))


SAME_NAME = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
from larl.policies import Policy, bind
from larl.worlds import World, register_latent

class ChoiceState(NamedTuple):
    {fields}

def act(state, bits):
    return int(state.arm)

def update(state, arm, reward):
    pass

def probabilities(state, available, out):
    for arm in range(out.size):
        out[arm] = 1.0 if arm == state.arm else 0.0

bind(ChoiceState, act, update, action_probabilities=probabilities)

@dataclass(frozen=True)
class {name}(Policy):
    def init(self, arms, **_):
        return ChoiceState(arm=1.0, other=0.0)

class PlaceState(NamedTuple):
    means: np.ndarray
    sd: np.ndarray

def begin(latent, seed, trial):
    latent.means[:] = {mean}

def advance(latent, key, t):
    return 0.0

register_latent(PlaceState, begin, advance)

@dataclass(frozen=True)
class Place(World):
    arms: int = 2
    k = 0
    def latent(self):
        return PlaceState(np.zeros(2), np.zeros(2))
"""


def test_states_of_one_name_are_played_by_their_own_functions(tmp_path, monkeypatch):
    """Two modules with equal names and types of fields: the order of fields, the arm and the means differ."""
    kinds = {
        "left": {"fields": "arm: float\n    other: float", "name": "Left", "mean": 1.0},
        "right": {"fields": "other: float\n    arm: float", "name": "Right", "mean": 2.0},
    }
    for name, values in kinds.items():
        (tmp_path / f"{name}.py").write_text(SAME_NAME.format(**values))
    monkeypatch.syspath_prepend(tmp_path)
    import left
    import right

    policies = {"left": left.Left(), "right": right.Right()}
    for world, mean in ((left.Place(), 1.0), (right.Place(), 2.0)):
        result = larl.compare(policies, world, horizon=5, trials=2, progress=False)
        assert (result.arm == 1).all()
        assert (result.reward == mean).all()
    assert [larl.Agent(each, 2).decide().arm for each in policies.values()] == ["1", "1"]


def test_class_that_is_defined_again_has_its_new_functions():
    """As a notebook cell that is edited and run again: module, names and types of fields are the same."""
    for wanted in (0, 1, 0):
        scope = {"__name__": "cell"}
        exec(OUTSIDE.format(arm=wanted), scope)
        result = larl.compare({"it": scope["Fixed"]()}, larl.worlds.paper(1), horizon=4, trials=2, progress=False)
        assert (result.arm == wanted).all()
        assert larl.Agent(scope["Fixed"](), 2).decide().arm == str(wanted)


def test_helper_that_is_defined_again_is_compiled_again():
    """`act` is the same text; a function and a constant that it uses are not."""
    source = """
import numba
STEP = {step}

@numba.njit
def shifted(arm):
    return (arm + STEP) % 2
""" + OUTSIDE.replace("return {arm}", "return shifted(0)").replace("arm == {arm}", "arm == shifted(0)")
    for step in (0, 1):
        scope = {"__name__": "cell"}
        exec(source.format(step=step), scope)
        assert larl.Agent(scope["Fixed"](), 2).decide().arm == str(step)


MISTAKES = {
    "return state.nothing": "outside.py:10: Unknown attribute 'nothing'",
    "return state.arms + 'a'": r"outside.py:10: No implementation of function .*add.* signature: add\(int64, .*a",
    "return unknown": r"outside\.py:\d+: NameError: name 'unknown' is not defined",
    "return 0.5": "outside.py:9: act returns float64, not a whole number",
    "return print": "outside.py:9: Can't return function object",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_in_an_own_function_names_file_line_and_reason(line, tmp_path, monkeypatch):
    (tmp_path / "outside.py").write_text(OUTSIDE.replace("return {arm}", line).replace("{arm}", "0"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "outside", raising=False)
    import outside

    with pytest.raises(TypeError, match=MISTAKES[line]):
        larl.compare({"it": outside.Fixed()}, larl.worlds.paper(1), horizon=3, trials=1, progress=False)


def test_index_outside_an_array_names_the_own_functions():
    scope = {"__name__": "cell"}
    exec(OUTSIDE.replace("pass", "(0, 1)[arm + 2 * state.arms]").format(arm=0), scope)
    agent = larl.Agent(scope["Fixed"](), 2)
    world = larl.worlds.paper(1)
    for run in (
        lambda: agent.observe(agent.decide(), 1.0),
        lambda: larl.compare({"it": scope["Fixed"]()}, world, horizon=3, trials=1, threads=1, progress=False),
    ):
        with pytest.raises(IndexError) as caught:
            run()
        assert any(
            re.match(r"functions of FixedState: act \(<string>:9\), update", each) for each in caught.value.__notes__
        )


def test_own_functions_can_use_their_state_as_a_tuple():
    scope = {"__name__": "cell"}
    exec(
        OUTSIDE.replace("return {arm}", "(arms,) = state; return state[0] - arms + len(state) - {arm}").format(arm=0),
        scope,
    )
    result = larl.compare({"it": scope["Fixed"]()}, larl.worlds.paper(1), horizon=4, trials=2, progress=False)
    assert (result.arm == 1).all()


def test_own_function_can_use_an_array_from_its_module():
    scope = {"__name__": "cell", "WEIGHTS": np.array([0.0, 1.0])}
    exec(OUTSIDE.replace("return {arm}", "return int(WEIGHTS[1])").replace("{arm}", "1"), scope)
    assert larl.Agent(scope["Fixed"](), 2).decide().arm == "1"


def test_policy_that_chooses_unknown_arm_raises(tmp_path):
    (tmp_path / "outside.py").write_text(OUTSIDE.format(arm=50_000_000))
    code = "import larl, outside; larl.compare({'a': outside.Fixed()}, larl.worlds.paper(1), horizon=3, trials=1)"
    with pytest.raises(AssertionError, match="chose an arm that does not exist"):
        run_python(code, PYTHONPATH=str(tmp_path))


def test_state_class_and_name_belong_to_one_policy():
    from larl.policies.ucb import UCBState

    with pytest.raises(TypeError, match="UCBState already has another act"):
        bind(UCBState, lambda state, bits: 1, lambda state, arm, reward: None)
    with pytest.raises(TypeError, match="a policy named UCB is already registered"):
        register(UCBState, lambda state, bits: 1, lambda state, arm, reward: None)(type("UCB", (Policy,), {}))
    assert larl.UCB.__module__ == "larl.policies.ucb"


def test_unknown_function_is_refused_before_the_state_is_bound():
    class NewState(NamedTuple):
        arms: int

    def act_first(state, bits):
        return 0

    def ignore(state, arm, reward):
        pass

    for function in (register, bind):
        with pytest.raises(larl.InvalidValue) as refused:
            function(NewState, act_first, ignore, shared=("arms",), odds=ignore)
        start, accepted = str(refused.value).split("; accepted: ")
        assert start.startswith(f"{function.__name__}: odds = <function ")
        assert accepted == "only the functions update_missing, predict, action_probabilities, set_context"
        assert not has_implementation(act, NewState)
        assert NewState not in SHARED_FIELDS
