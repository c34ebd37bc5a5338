"""What broke a promise once, or could have."""

import math

import pytest

from larl.live.files import state_arrays
from larl.service import clock
from larl.service.core.problems import Problem
from tests.service.host import LARL, UCB, Host, hosts


def test_a_reward_in_time_is_learnt_as_such_after_a_restart(storage: str) -> None:
    with hosts(storage) as [host]:
        host.make()
        first = host.decide("u", "1")
    with hosts(storage) as [host]:
        assert host.reward(first["id"], "1", 0.5)["status"] == "learnt"


def test_a_cohort_follows_what_another_process_wrote_before_a_unit_enters(postgres: str) -> None:
    with hosts(postgres, 2) as [one, two]:
        one.make(pooling="full", policy=LARL, min_probability=0.2)
        one.decide("u0", "0")
        two.decide("u1", "1")
        for i, host in enumerate([one, two] * 6, 2):
            host.decide(f"u{i}", str(i))
        assert one.check() == 14


def test_a_row_that_is_not_learnt_from_hides_none_that_is(postgres: str) -> None:
    with hosts(postgres, 2) as [one, two]:
        for study, pooling in {"alone": "none", "pooled": "partial"}.items():
            one.make(study, pooling=pooling, policy=LARL, min_probability=0.2)
            first = one.decide("u", "0", study)
            second = two.decide("u", "1", study)
            one.delivered(first["id"], "0")
            assert one.reward(second["id"], "1", 1.0)["status"] == "learnt"
            two.reward(first["id"], "0", 0.5)
            one.delivered(second["id"], "1")
            one.decide("u", "2", study)
        one.check()


def test_an_issue_that_another_process_resolved_is_noted_when_it_comes_back(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([f"2026-01-01T{hour:02}:00:00.000000Z" for hour in (9, 8, 7, 6)])
    monkeypatch.setattr("larl.service.core.batch.now", lambda: next(times, clock.now()))
    with hosts(postgres, 2) as [one, two]:
        one.make()
        one.decide("u", "1")
        [issue] = one.issues()
        two.resolve(issue["issue"])
        one.decide("u", "2")
        assert [each["resolved"] is None for each in one.issues()] == [False, True]


def test_a_reward_of_no_arm_is_refused_also_while_the_policy_rests(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        host.make()
        nothing = host.decide("u", "1", available=[], reason="asleep")
        with pytest.raises(Problem, match="none was available"):
            host.reward(nothing["id"], "1", 1.0)
        _broken(host, monkeypatch)
        with pytest.raises(Problem, match="none was available"):
            host.reward(nothing["id"], "1", 1.0)
        assert host.reward(nothing["id"], "2", 1.0, arm="b")["status"] == "stored"
        monkeypatch.undo()
        host.change("p", 1, UCB)
        assert host.decide("u", "3")["source"] == "policy"


def _broken(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the policy fails, until `undo`."""

    def fail(*_: object) -> None:
        raise ArithmeticError("no")

    for name in ("decide", "observe", "record"):
        monkeypatch.setattr(f"larl.service.core.agents.AgentHandle.{name}", fail)


def test_a_clock_that_went_back_is_noted_also_if_the_first_request_after_it_is_refused(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosts(sqlite) as [host]:
        host.make(registration="explicit")
        host.register("u")
        monkeypatch.setattr("larl.service.core.batch.now", lambda: "2001-01-01T00:00:00.000000Z")
        with pytest.raises(Problem, match="no such unit"):
            host.decide("stranger", "1")
        assert host.issues() == []
        host.decide("u", "2")
        assert [issue["code"] for issue in host.issues()] == ["clock"]


def test_a_cohort_that_was_kept_takes_a_reward_as_it_would_have(sqlite: str) -> None:
    with hosts(sqlite) as [host]:
        host.make(policy=LARL, pooling="partial")
        host.decide("u1", "1")
        for i in range(5):
            last = host.decide("u2", f"k{i}")
    with hosts(sqlite) as [host]:
        assert host.reward(last["id"], "1", 0.5)["status"] == "learnt"
        host.decide("u1", "2")
        host.check()


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_a_policy_that_has_learnt_what_is_no_number_does_not_decide(sqlite: str, pooling: str) -> None:
    with hosts(sqlite) as [host]:
        host.make(policy=LARL, pooling=pooling)
        for i in range(5):
            host.reward(host.decide("u", str(i))["id"], str(i), 0.5)
        _poison(host, pooling)
        said = host.decide("u", "6")
        assert (said["source"], said["fallback"]) == ("fallback", True)
        assert [issue["code"] for issue in host.issues()] == ["policy"]
        assert host.decide("u", "7")["source"] == "policy"  # it was made anew from the journal


def _poison(host: Host, pooling: str) -> None:
    """Spoil a matrix in what the policy has learnt."""
    handle = host.batch.studies.agents._handles["sleep", "u" if pooling == "none" else ""]
    state = handle.agent.state if pooling == "none" else handle.agent._history.stacked_state
    for name, array in state_arrays(state).items():
        if name.endswith("inverse"):
            array[...] = math.nan
