"""The code in the documentation runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from larl.client import Client
from tests.service.running import LARL, running

ROOT = Path(__file__).parents[1]


def blocks(path: Path) -> str:
    """All Python of a page, one block after the other."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M))


def execute(code: str, folder: Path) -> str:
    """What the code prints, run in a folder as a program of its own, warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"MPLBACKEND": "agg"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/agent.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    code = blocks(ROOT / page)
    assert "larl." in code
    execute(code, tmp_path)
    assert (tmp_path / "agent.json").exists()


def test_the_policy_of_contributing_runs_and_draws_every_arm(tmp_path: Path) -> None:
    # A first draw that says "explore" and a second that says "which arm" share no bits: all arms are explored alike.
    count = """
world = larl.LatentAR(gammas=[0.0], beta=[0.0] * 4, mu=[-1.0, -1.0, -1.0, 0.0])
arm = larl.compare({"it": EpsilonGreedy(0.25)}, world, horizon=400, trials=50, seed=1).arm.values.ravel()
print("explored", [int((arm == i).sum()) for i in range(3)])
"""
    said = execute(blocks(ROOT / "CONTRIBUTING.md") + count, tmp_path)
    explored = [int(each) for each in re.findall(r"\d+", said.splitlines()[-1])]
    expected = 400 * 50 * 0.25 / 4  # each of the worse arms, apart from a few plays before their means are known
    assert all(abs(each - expected) < 5.0 * expected**0.5 + 50 for each in explored), explored


@pytest.mark.parametrize("page", ["README.md", "docs/service.md", "docs/client.md"])
def test_the_code_of_a_page_runs_against_a_service(page: str, tmp_path: Path) -> None:
    """As a reader follows it: a token, a service beside it, then all Python of the page with both filled in."""
    created = subprocess.run(
        [*LARL, "token", "create", "--role", "admin"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    token, code = created.stdout.strip(), blocks(ROOT / page)
    assert "larl.Client(" in code
    with running(tmp_path, "--timeout", "60") as address:
        code = code.replace("http://127.0.0.1:8080", address).replace("larl_…", token)
        given = f"import larl\nurl, token = {address!r}, {token!r}\n"
        execute(given + code, tmp_path)
        with Client(address, token) as client:
            assert [each.unit for each in client.units("sleep")] == ["unit-17"]
            assert {each.reward for each in client.decisions("sleep")} == {0.4}


def links(path: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page: str) -> None:
    for link in links(ROOT / page):
        assert (ROOT / page).parent.joinpath(link).exists(), link
