"""The code in the documentation runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(path: Path) -> str:
    """All Python of a page, one block after the other."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M))


@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/agent.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    code = blocks(ROOT / page)
    assert "larl." in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "agent.json").exists()


def test_the_policy_of_contributing_runs_and_draws_every_arm(tmp_path: Path) -> None:
    # A first draw that says "explore" and a second that says "which arm" share no bits: all arms are explored alike.
    count = """
from collections import Counter
import numpy as np
from larl.policies._contract import REGISTRY
world = larl.LatentAR(gammas=[0.0], beta=[0.0] * 4, mu=[-1.0, -1.0, -1.0, 0.0])
arm = larl.compare({"it": EpsilonGreedy(0.25)}, world, horizon=400, trials=50, seed=1).arm.values.ravel()
print("explored", [int((arm == i).sum()) for i in range(3)])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks(ROOT / "CONTRIBUTING.md") + count],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    explored = [int(each) for each in re.findall(r"\d+", done.stdout.splitlines()[-1])]
    expected = 400 * 50 * 0.25 / 4  # each of the worse arms, apart from a few plays before their means are known
    assert all(abs(each - expected) < 5.0 * expected**0.5 + 50 for each in explored), explored


def links(path: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page: str) -> None:
    for link in links(ROOT / page):
        assert (ROOT / page).parent.joinpath(link).exists(), link
