"""Cases that were wrong once: restarts, several processes, clocks, failing policies, and the use of an index."""

import math
from typing import Any

import pytest

from larl.live.files import state_arrays
from larl.service import clock
from larl.service.core.problems import Problem
from larl.service.storage.database import Database
from larl.service.storage.journal import select_by_key
from tests.service.host import LARL, UCB, Host, hosts
from tests.service.sample_journal import SampleHost


def test_reward_after_a_restart_is_learnt(storage: str) -> None:
    with hosts(storage) as [host]:
        host.create_study()
        first = host.decide("u", "1")
    with hosts(storage) as [host]:
        assert host.reward(first["id"], "1", 0.5)["status"] == "learnt"


def test_cohort_learns_events_of_another_process_before_a_unit_is_registered(postgres: str) -> None:
    with hosts(postgres, 2) as [one, two]:
        one.create_study(pooling="full", policy=LARL, min_probability=0.2)
        one.decide("u0", "0")
        two.decide("u1", "1")
        for i, host in enumerate([one, two] * 6, 2):
            host.decide(f"u{i}", str(i))
        assert one.replay() == 14


def test_events_without_learning_do_not_hide_events_of_another_process(postgres: str) -> None:
    with hosts(postgres, 2) as [one, two]:
        for study, pooling in {"alone": "none", "pooled": "partial"}.items():
            one.create_study(study, pooling=pooling, policy=LARL, min_probability=0.2)
            first = one.decide("u", "0", study)
            second = two.decide("u", "1", study)
            one.deliver(first["id"], "0")
            assert one.reward(second["id"], "1", 1.0)["status"] == "learnt"
            two.reward(first["id"], "0", 0.5)
            one.deliver(second["id"], "1")
            one.decide("u", "2", study)
        one.replay()


def test_issue_that_another_process_resolved_is_recorded_again(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([f"2026-01-01T{hour:02}:00:00.000000Z" for hour in (9, 8, 7, 6)])
    monkeypatch.setattr("larl.service.core.batch.now", lambda: next(times, clock.now()))
    with hosts(postgres, 2) as [one, two]:
        one.create_study()
        one.decide("u", "1")
        [issue] = one.issues()
        two.resolve(issue["issue"])
        one.decide("u", "2")
        assert [each["resolved"] is None for each in one.issues()] == [False, True]


def test_reward_without_an_arm_is_refused_also_while_the_policy_fails(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        host.create_study()
        unavailable = host.decide("u", "1", available=[], reason="asleep")
        with pytest.raises(Problem, match="none was available"):
            host.reward(unavailable["id"], "1", 1.0)
        _break_policy(monkeypatch)
        with pytest.raises(Problem, match="none was available"):
            host.reward(unavailable["id"], "1", 1.0)
        assert host.reward(unavailable["id"], "2", 1.0, arm="b")["status"] == "stored"
        monkeypatch.undo()
        host.change_policy("p", 1, UCB)
        assert host.decide("u", "3")["source"] == "policy"


def _break_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the policy fail until `undo`."""

    def fail(*_: object) -> None:
        raise ArithmeticError("broken")

    for name in ("decide", "observe", "record"):
        monkeypatch.setattr(f"larl.service.core.agents.AgentHandle.{name}", fail)


def test_clock_that_goes_back_is_recorded_although_the_first_request_is_refused(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        host.create_study(registration="explicit")
        host.register("u")
        monkeypatch.setattr("larl.service.core.batch.now", lambda: "2001-01-01T00:00:00.000000Z")
        with pytest.raises(Problem, match="no such unit"):
            host.decide("stranger", "1")
        assert host.issues() == []
        host.decide("u", "2")
        assert [issue["code"] for issue in host.issues()] == ["clock"]


@pytest.mark.parametrize("policy", [{"policy": "CohortLARL", "s": 2}, {"policy": "CohortAuto"}])
def test_cohort_continues_after_a_restart_and_replays(sqlite: str, policy: dict[str, Any]) -> None:
    """Rewards of three units, some late, in two processes: the replay finds every decision again."""
    pending = []
    for run in range(2):
        with hosts(sqlite) as [host]:
            if run == 0:
                host.create_study(policy=policy, pooling="partial", min_probability=0.1)
            for i in range(15):
                made = host.decide(f"u{i % 3}", f"{run}-{i}")
                pending.append(made["id"])
                if i % 4 != 3:  # the reward of the decision before the last is late by one
                    host.reward(pending.pop(0), f"r{run}-{i}", 0.1 * i)
            assert host.replay() == 15 * (run + 1)
    assert made["expected"] is not None


def test_cohort_from_a_snapshot_learns_a_reward(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL, pooling="partial")
        host.decide("u1", "1")
        for i in range(5):
            last = host.decide("u2", f"k{i}")
    with hosts(sqlite) as [host]:
        assert host.reward(last["id"], "1", 0.5)["status"] == "learnt"
        host.decide("u1", "2")
        host.replay()


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_policy_with_nan_in_its_state_does_not_decide(sqlite: str, pooling: str) -> None:
    with hosts(sqlite) as [host]:
        host.create_study(policy=LARL, pooling=pooling)
        for i in range(5):
            host.reward(host.decide("u", str(i))["id"], str(i), 0.5)
        _set_nan(host, pooling)
        decision = host.decide("u", "6")
        assert (decision["source"], decision["fallback"]) == ("fallback", True)
        assert [issue["code"] for issue in host.issues()] == ["policy"]
        assert host.decide("u", "7")["source"] == "policy"  # it was rebuilt from the journal


def _set_nan(host: Host, pooling: str) -> None:
    """Set a matrix of the policy's State to NaN."""
    handle = host.resources.cache.get(("sleep", "u" if pooling == "none" else ""))
    assert handle is not None
    state = handle.agent.state if pooling == "none" else handle.agent._history.memory.stacked()
    for name, array in state_arrays(state).items():
        if name.endswith("inverse"):
            array[...] = math.nan


def test_reward_without_an_arm_is_refused_also_after_a_timeout(sqlite: str) -> None:
    host = SampleHost(sqlite)
    host.create_study("s", UCB, seed=1)
    unavailable = host.decide("s", "u", available=[])
    host.make_policies_fail(True)
    with pytest.raises(Problem, match="none was available"):
        host.reward(unavailable, 0.5)
    host.make_policies_fail(False)
    assert host.decision("s", "u")["source"] == "policy"
    host.make_policies_fail(True)
    assert host.reward(unavailable, 0.5, arm="go") == "stored"
    host.make_policies_fail(False)
    assert host.decision("s", "u")["source"] == "policy"
    host.close()


def test_keys_are_found_by_an_index(sqlite: str) -> None:
    """Every command looks up its key: the time must not grow with the journal."""
    database, query = Database(sqlite, write=True, create=True), f"EXPLAIN QUERY PLAN {select_by_key(2, '?')}"
    with database.reading() as connection:
        plan = connection.exec_driver_sql(query, ("s", "decision", "1", "2")).all()
    database.close()
    assert [row.detail for row in plan] == ["SEARCH journal USING INDEX once (study=? AND kind=? AND key=?)"]
