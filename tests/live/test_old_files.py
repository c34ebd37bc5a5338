"""Agents and cohorts from files of earlier versions continue as they would have."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import larl

OLD = Path(__file__).parent / "old"


def read_cases(name: str) -> dict[str, Any]:
    """By name: the contents of a file, and the next decisions of the version that wrote it."""
    cases: dict[str, Any] = json.loads(gzip.decompress((OLD / name).read_bytes()))
    return cases


def next_decisions(decide: Any, observe: Any, steps: int) -> list[Any]:
    """The next decisions, and the status of each reward."""
    log = []
    for t in range(steps):
        decision = decide(t)
        status = observe(decision, 0.3 * (t % 4) - 0.4)
        log.append(
            [
                decision.arm,
                list(decision.probabilities.values()),
                decision.expected,
                decision.width,
                decision.id,
                str(status),
            ]
        )
    return log


@pytest.mark.parametrize("name", read_cases("agents-2.json.gz"))
def test_schema_2_agent_continues_identically(name: str, tmp_path: Path) -> None:
    case, path = read_cases("agents-2.json.gz")[name], tmp_path / "agent.json"
    path.write_text(json.dumps(case["file"]))
    agent = larl.Agent.load(path)
    assert next_decisions(lambda _: agent.decide(), agent.observe, len(case["next"])) == case["next"]


@pytest.mark.parametrize("name", read_cases("cohorts-2.json.gz"))
def test_schema_2_cohort_continues_identically(name: str, tmp_path: Path) -> None:
    case, path = read_cases("cohorts-2.json.gz")[name], tmp_path / "cohort.json"
    path.write_text(json.dumps(case["file"]))
    cohort = larl.Cohort.load(path)
    assert next_decisions(lambda t: cohort.decide("xyzw"[t % 4]), cohort.observe, len(case["next"])) == case["next"]
