"""The compiler's cache is never stale, foreign policies work, and the same source runs uncompiled."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import larl
from larl._core import compile as _compile
from larl.policies import Policy, bind, register
from tests.waiting import HANGS

PACKAGE = Path(larl.__file__).parent


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
        env=os.environ | environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_source_with_kernels_is_in_the_digest():
    covered = {path for pattern in _compile.KERNEL_SOURCES for path in PACKAGE.glob(pattern)}
    for path in PACKAGE.rglob("*.py"):
        if re.search(
            r"^(@(kernel|entry|inner|inline|generic)|implement\()", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            assert path in covered, f"{path.name} compiles functions: add it to KERNEL_SOURCES"


def test_a_changed_policy_is_never_served_from_the_cache(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "larl", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import larl; r = larl.compare({'it': larl.RoundRobin()}, larl.worlds.paper(1), horizon=4, trials=1);"
        "print(r.arm.values.tolist())"
    )
    settings = {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(code, **settings).strip() == "[[[0, 1, 0, 1]]]"
    assert list((tmp_path / "cache").rglob("*.nbi"))
    source = tmp_path / "src" / "larl" / "policies" / "round_robin.py"
    text = source.read_text(encoding="utf-8")
    assert "state.time[0] % state.arms" in text
    source.write_text(text.replace("state.time[0] % state.arms", "(state.time[0] + 1) % state.arms"), encoding="utf-8")
    assert python(code, **settings).strip() == "[[[1, 0, 1, 0]]]"


def test_an_unwritable_cache_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("in the way")
    code = "import larl; print(larl.compare({'it': larl.Random()}, larl.worlds.paper(1), horizon=4, trials=1))"
    assert "4 time" in python(code, NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))


def test_import_is_light():
    heavy = "'xarray', 'pandas', 'matplotlib', 'scipy', 'numba', 'typer'"
    assert python(f"import larl, sys; print([m for m in ({heavy}) if m in sys.modules])").strip() == "[]"
    heavy = "'xarray', 'pandas', 'matplotlib', 'scipy.linalg', 'typer'"
    code = f"import larl, sys; larl.LARL(3); larl.worlds.paper(1); print([m for m in ({heavy}) if m in sys.modules])"
    assert python(code).strip() == "[]"


def test_the_same_source_runs_uncompiled(tmp_path):
    # Arms equal, numbers to rounding: the interpreter's logarithm need not be the compiler's to the last bit.
    for flag in ("0", "1"):
        code = (
            "import larl; from tests.conftest import SPECS, THREE_ARMS;"
            "r = larl.compare({str(s): s for s in SPECS}, THREE_ARMS, horizon=40, trials=2, seed=3, threads=1);"
            f"r.save({str(tmp_path / flag)!r})"
        )
        python(code, NUMBA_DISABLE_JIT=flag)
    compiled, plain = larl.load(tmp_path / "0"), larl.load(tmp_path / "1")
    assert np.array_equal(compiled.arm, plain.arm)
    assert np.allclose(compiled.regret, plain.regret, rtol=1e-9, atol=1e-12)


OUTSIDE = """
from dataclasses import dataclass
from typing import NamedTuple
from larl.policies import Policy, register

class FixedState(NamedTuple):
    arms: int

def act(state, word):
    return {arm}

def update(state, arm, reward):
    pass

def odds(state, available, out):
    for arm in range(out.size):
        out[arm] = 1.0 if arm == {arm} else 0.0

@register(FixedState, act, update, action_probabilities=odds)
@dataclass(frozen=True)
class Fixed(Policy):
    def init(self, arms, **_):
        return FixedState(arms)
"""


def test_a_policy_from_outside_is_compiled_afresh_and_leaves_nothing(tmp_path):
    code = (
        "import larl, outside; r = larl.compare({'a': outside.Fixed()}, larl.worlds.paper(1), horizon=3, trials=1);"
        "print(r.arm.values.ravel().tolist(), larl.Agent(outside.Fixed(), 2).decide().arm)"
    )
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    for arm in (0, 1):
        (tmp_path / "outside.py").write_text(OUTSIDE.format(arm=arm))
        assert python(code, **settings).strip() == f"[{arm}, {arm}, {arm}] {arm}"
    (tmp_path / "outside.py").unlink()
    code = "import larl; print(larl.compare({'a': larl.Random()}, larl.worlds.paper(1), horizon=3, trials=1))"
    assert "3 time" in python(code, **settings)  # no cached index asks for the module that is gone


def test_an_arm_that_does_not_exist_is_an_error(tmp_path):
    (tmp_path / "outside.py").write_text(OUTSIDE.format(arm=50_000_000))
    code = "import larl, outside; larl.compare({'a': outside.Fixed()}, larl.worlds.paper(1), horizon=3, trials=1)"
    with pytest.raises(AssertionError, match="chose an arm that does not exist"):
        python(code, PYTHONPATH=str(tmp_path))


def test_a_state_and_a_name_belong_to_one_policy():
    from larl.policies.ucb import UCBState

    with pytest.raises(TypeError, match="UCBState is tied to another act already"):
        bind(UCBState, lambda state, word: 1, lambda state, arm, reward: None)
    with pytest.raises(TypeError, match="a policy named UCB is already registered"):
        register(UCBState, lambda state, word: 1, lambda state, arm, reward: None)(type("UCB", (Policy,), {}))
    assert larl.UCB.__module__ == "larl.policies.ucb"
