"""Policies of the user in a study: "module:Class"."""

import os
import subprocess
import sys

import pytest

import larl
from larl.policies import REGISTRY
from tests.cli.running import STUDY, command, run_here
from tests.waiting import HANGS

GREEDY = """
from dataclasses import dataclass
from typing import Any, NamedTuple
import numpy as np
from larl.policies import Policy, register

class GreedyState(NamedTuple):
    total: Any

def act(state, bits):
    return np.argmax(state.total)

def update(state, arm, reward):
    state.total[arm] += reward

@register(GreedyState, act, update)
@dataclass(frozen=True)
class Greedy(Policy):
    start: float = 0.0

    def init(self, arms: int, **_: Any) -> GreedyState:
        return GreedyState(np.full(arms, self.start))
"""


@pytest.mark.parametrize("where", ["beside the file", "working directory", "cluster"])
def test_policy_is_named_by_module_and_class(study, tmp_path, where):
    name = f"greedy_{where.split()[0]}"
    folder = tmp_path / "elsewhere" if where == "working directory" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(GREEDY)
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "{name}:Greedy"\nstart = 1.0'))
    arguments = ["compare", study, "--out", tmp_path / "out", *(["--cluster", "local:1"] if where == "cluster" else [])]
    # Policies from outside larl are compiled in every process. Where they are found does not depend on it.
    settings = os.environ | {"NUMBA_DISABLE_JIT": "0" if where == "beside the file" else "1"}
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=HANGS, cwd=folder, env=settings
    )
    assert done.returncode == 0, done.stderr
    assert '"policy": "Greedy", "start": 1.0' in larl.load(tmp_path / "out" / "result.nc").data.attrs["policies"]


@pytest.fixture
def separate_imports(monkeypatch):
    """Forget the modules and policies that a test imports from its folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    registered = set(REGISTRY)
    yield
    for name in set(REGISTRY) - registered:
        del REGISTRY[name]
    for name in ("greedy_wrong", "greedy_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nowhere:Greedy", "'nowhere' cannot (ModuleNotFoundError: No module named 'nowhere')"),
        ("greedy_wrong:Gredy", "'greedy_wrong' has Greedy"),
        ("greedy_wrong:np", "'greedy_wrong' has Greedy"),
        ("greedy_broken:Greedy", "'greedy_broken' cannot (ZeroDivisionError: "),
    ],
)
def test_missing_policy_is_an_error_of_one_line(separate_imports, study, tmp_path, policy, message):
    (tmp_path / "greedy_wrong.py").write_text(GREEDY)
    (tmp_path / "greedy_broken.py").write_text("1 / 0")
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "{policy}"'))
    done = run_here("compare", study, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"policy = '{policy}'" in done.stderr
    assert message in done.stderr
