"""A reward that comes while the policy fails is stored only if a mind could learn it."""

from pathlib import Path

import pytest

from larl.service.problems import Problem
from tests.service import records


def test_a_reward_for_a_step_without_an_arm_is_refused_while_the_policy_fails(tmp_path: Path) -> None:
    host = records.Host(f"sqlite:///{tmp_path / 's.db'}")
    host.study("s", records.UCB, seed=1)
    passed = host.decide("s", "u", available=[])
    host.too_slow(True)
    with pytest.raises(Problem, match="none was available"):
        host.reward(passed, 0.5)
    host.too_slow(False)
    assert source_of(host, host.decide("s", "u")) == "policy"
    host.too_slow(True)
    assert host.reward(passed, 0.5, arm="go") == "stored"
    host.too_slow(False)
    assert source_of(host, host.decide("s", "u")) == "policy"
    host.close()


def source_of(host: records.Host, name: str) -> str:
    (row,) = [row for row in host.desk._book.select() if row.ref == name and row.kind == "decision"]
    return str(row.said["source"])
