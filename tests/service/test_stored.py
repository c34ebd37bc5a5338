"""What is stored: a reward that comes while the policy fails only if a mind could learn it; and what is found again."""

from pathlib import Path

import pytest

from larl.service.core.problems import Problem
from larl.service.storage.database import Database
from larl.service.storage.journal import select_by_key
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
    (row,) = [row for row in host.batch.journal.select() if row.ref == name and row.kind == "decision"]
    return str(row.response["source"])


def test_keys_are_found_by_their_index(tmp_path: Path) -> None:
    """However long the journal has become: every command asks whether its key is there."""
    database = Database(f"sqlite:///{tmp_path / 's.db'}", write=True, create=True)
    with database.reading() as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {select_by_key(2, '?')}", ("s", "decision", "1", "2")
        ).all()
    database.close()
    assert [row.detail for row in plan] == ["SEARCH journal USING INDEX once (study=? AND kind=? AND key=?)"]
