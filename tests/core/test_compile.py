"""The cache of machine code is never stale, policies from outside larl work, and sources also run uncompiled."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import larl
from larl._core.compile import has_implementation, is_larl
from larl._core.kernel_cache import KERNEL_SOURCES
from larl.policies import Policy, bind, register
from larl.policies._contract import SHARED_FIELDS, act
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
    covered = {path for pattern in KERNEL_SOURCES for path in PACKAGE.glob(pattern)}
    for path in PACKAGE.rglob("*.py"):
        if re.search(
            r"^(@(kernel|entry_point|inner|inline|generic)\b|implement\()",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            assert path in covered, f"{path.name} compiles functions: add it to KERNEL_SOURCES"


def test_changed_policy_is_compiled_again(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "larl", ignore=shutil.ignore_patterns("__pycache__"))
    code = DECISIONS.format("RoundRobin")
    settings = {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_python(code, **settings).strip() == "['0', '1', '0', '1']"
    assert list((tmp_path / "cache").rglob("*.nbi"))
    source = tmp_path / "src" / "larl" / "policies" / "round_robin.py"
    text = source.read_text(encoding="utf-8")
    assert "state.time[0] % state.arms" in text
    source.write_text(text.replace("state.time[0] % state.arms", "(state.time[0] + 1) % state.arms"), encoding="utf-8")
    assert run_python(code, **settings).strip() == "['1', '0', '1', '0']"


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


def test_uncompiled_results_equal_compiled_results(tmp_path):
    # Arms are equal, numbers only up to rounding: Python's logarithm can differ from the compiler's in the last bit.
    # CohortAuto takes half a minute uncompiled; its parts, CohortLARL and Auto, are compared.
    for flag in ("0", "1"):
        code = (
            "import larl; from tests.conftest import SPECS, THREE_ARMS, world_of;"
            "specs = [s for s in SPECS if world_of(s) == THREE_ARMS and not isinstance(s, larl.CohortAuto)];"
            "r = larl.compare({str(s): s for s in specs}, THREE_ARMS, horizon=40, trials=1, seed=3, threads=1);"
            f"r.save({str(tmp_path / flag)!r})"
        )
        run_python(code, NUMBA_DISABLE_JIT=flag)
    compiled, plain = larl.load(tmp_path / "0"), larl.load(tmp_path / "1")
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


def test_policy_from_outside_larl_is_not_cached(tmp_path):
    code = "import larl, outside; print(larl.Agent(outside.Fixed(), 2).decide().arm)"
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    for arm in (0, 1):
        (tmp_path / "outside.py").write_text(OUTSIDE.format(arm=arm))
        assert run_python(code, **settings).strip() == str(arm)
    (tmp_path / "outside.py").unlink()
    printed = run_python(DECISIONS.format("RoundRobin"), **settings)
    assert printed.strip() == "['0', '1', '0', '1']"  # the cache does not refer to the deleted module


def test_state_from_outside_inside_one_of_larl_is_not_cached():
    """A `Deployed` policy has the State of its policy inside its own."""

    class OutsideState(NamedTuple):
        arms: int

    plain = larl.Deployed(larl.UCB(), warm_up=1).init(2)
    assert is_larl(plain)
    assert not is_larl(plain._replace(inner=OutsideState(2)))
    assert not is_larl(OutsideState(2))


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
        assert accepted == "only the functions update_missing, predict, action_probabilities, set_context, has_nan"
        assert not has_implementation(act, NewState)
        assert NewState not in SHARED_FIELDS
