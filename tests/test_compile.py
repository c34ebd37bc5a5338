"""The compiler's cache is never stale, foreign policies work, and the same source runs uncompiled."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import larl
from larl import _compile
from larl.policies import REGISTRY, Policy, register
from tests.conftest import THREE_ARMS

PACKAGE = Path(larl.__file__).parent


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=600,
        env=os.environ | environment, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_source_with_kernels_is_in_the_digest():
    covered = {path for pattern in _compile.KERNEL_SOURCES for path in PACKAGE.glob(pattern)}
    for path in PACKAGE.rglob("*.py"):
        if "larl._compile import" in path.read_text(encoding="utf-8"):
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


class GreedyState(NamedTuple):
    total: np.ndarray


def greedy_act(state, word):
    return int(np.argmax(state.total))


def greedy_update(state, arm, reward):
    state.total[arm] += reward


def test_a_policy_from_outside_runs_and_is_not_cached(monkeypatch):
    monkeypatch.setattr("larl.policies._contract.REGISTRY", dict(REGISTRY))

    @register(GreedyState, greedy_act, greedy_update)
    @dataclass(frozen=True)
    class Greedy(Policy):
        """The arm with the largest sum of rewards."""

        def init(self, arms, **_):
            return GreedyState(np.zeros(arms))

    files = set(_compile.cache_folder().rglob("*"))
    result = larl.compare({"mine": Greedy(), "LARL": larl.LARL(1)}, THREE_ARMS, horizon=30, trials=3)
    arms, rewards = result.arm.values[0, 0], result.reward.values[0, 0]
    for t in range(1, 30):
        assert arms[t] == np.argmax(np.bincount(arms[:t], rewards[:t], minlength=3))
    grown = {path.name for path in set(_compile.cache_folder().rglob("*")) - files}
    assert not any("play_all" in name for name in grown if name.endswith(".nbc"))
