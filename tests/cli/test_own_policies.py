"""Policies of the user in a study: "module:Class"."""

import sys

import pytest

import larl
from larl.policies import REGISTRY
from tests.cli.running import STUDY, run_here

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


@pytest.fixture
def separate_imports(monkeypatch):
    """Forget the modules and policies that a test imports from its folder."""
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    registered = set(REGISTRY)
    yield
    for name in set(REGISTRY) - registered:
        del REGISTRY[name]
    for name in [each for each in sys.modules if each.startswith("greedy_")]:
        del sys.modules[name]


@pytest.mark.parametrize("where", ["beside the file", "working directory", "cluster"])
def test_policy_is_named_by_module_and_class(separate_imports, study, tmp_path, monkeypatch, where):
    name = f"greedy_{where.split()[0]}"
    folder = tmp_path / "elsewhere" if where == "working directory" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(GREEDY)
    study.write_text(STUDY.replace('policy = "UCB"', f'policy = "{name}:Greedy"\nstart = 1.0'))
    if where == "working directory":
        monkeypatch.chdir(folder)
    options = ["--cluster", "local:1"] if where == "cluster" else []
    done = run_here("compare", study, "--out", tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    assert '"policy": "Greedy", "start": 1.0' in larl.load(tmp_path / "out" / "result.nc").data.attrs["policies"]


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
