"""Files of earlier versions load, and the agents and cohorts in them continue as they would have."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import larl

OLD = Path(__file__).parent / "old"


def saved(name: str) -> dict[str, Any]:
    """Name: the contents of a file, and the decisions that the version that wrote it made next."""
    found: dict[str, Any] = json.loads(gzip.decompress((OLD / name).read_bytes()))
    return found


def continued(decide: Any, observe: Any, steps: int) -> list[Any]:
    """The next decisions, and how the reward of each was taken."""
    log = []
    for t in range(steps):
        made = decide(t)
        taken = observe(made, 0.3 * (t % 4) - 0.4)
        log.append([made.arm, list(made.probabilities.values()), made.expected, made.width, made.id, str(taken)])
    return log


@pytest.mark.parametrize("name", saved("agents-2.json.gz"))
def test_an_agent_of_schema_2_continues(name: str, tmp_path: Path) -> None:
    case, path = saved("agents-2.json.gz")[name], tmp_path / "agent.json"
    path.write_text(json.dumps(case["file"]))
    agent = larl.Agent.load(path)
    assert continued(lambda _: agent.decide(), agent.observe, len(case["next"])) == case["next"]


@pytest.mark.parametrize("name", saved("cohorts-2.json.gz"))
def test_a_cohort_of_schema_2_continues(name: str, tmp_path: Path) -> None:
    case, path = saved("cohorts-2.json.gz")[name], tmp_path / "cohort.json"
    path.write_text(json.dumps(case["file"]))
    cohort = larl.Cohort.load(path)
    assert continued(lambda t: cohort.decide("xyzw"[t % 4]), cohort.observe, len(case["next"])) == case["next"]
