"""The ledger of a rehearsal expects the right records, and finds every difference from them."""

from dataclasses import replace

import pytest

from larl.client import DecisionRecord, RewardRecord, ServiceDecision
from larl.rehearsal.ledger import Ledger

MAX_DELAY = 3


def decision(t: int, arm: str | None = "a") -> ServiceDecision:
    return ServiceDecision(
        id=f"s.0-{t}-x",
        study="s",
        unit="u",
        t=t,
        arm=arm,
        probabilities={"a": 1.0, "b": 0.0},
        expected=None,
        width=None,
        explored=False,
        fallback=False,
        source="policy",
        policy_version=1,
        larl="0",
        at="now",
    )


def ledger(steps: int, default: float | None = None) -> Ledger:
    found = Ledger("u", MAX_DELAY, default)
    for t in range(steps):
        found.add_decision(decision(t))
    return found


def state(of: Ledger, t: int = 0) -> tuple[str, float | None]:
    return of.entries[t].state, of.entries[t].reward


def records(of: Ledger) -> tuple[list[DecisionRecord], list[RewardRecord]]:
    """The records of a correct service."""
    decisions = [
        DecisionRecord(
            **vars(each.decision), reason=None, state=each.state, reward=each.reward, played="a", delivered=None
        )
        for each in of.entries
    ]
    rewards = [
        RewardRecord(
            decision=each.decision.id,
            value=value,
            arm=None,
            status="learnt",
            at="now",
            seq=0,
            unit="u",
            default=default,
        )
        for each in of.entries
        for value, default in each.rewards
    ]
    return decisions, rewards


def test_reward_in_time_can_be_repeated_and_corrected() -> None:
    of = ledger(1)
    assert state(of) == ("pending", None)
    of.add_reward(0, 1.5, "learnt")
    assert state(of) == ("observed", 1.5)
    of.add_reward(0, 1.5, "repeated")
    assert state(of) == ("observed", 1.5)
    of.add_reward(0, 2.5, "corrected")
    of.add_reward(0, 2.5, "repeated")
    assert state(of) == ("corrected", 2.5)
    assert of.entries[0].rewards == [(1.5, False), (1.5, False), (2.5, False), (2.5, False)]
    assert of.differences == []


def test_reward_is_late_after_max_delay_decisions() -> None:
    of = ledger(MAX_DELAY)
    of.add_reward(0, 1.0, "repaired")
    assert state(of) == ("observed", 1.0)
    of = ledger(MAX_DELAY + 1)
    assert state(of) == ("missing", None)
    assert state(of, 1) == ("pending", None)
    of.add_reward(0, 1.0, "late")
    assert state(of) == ("late", None)
    assert of.entries[0].rewards == [(None, True), (1.0, False)]
    assert of.differences == []


def test_default_reward_stays_when_reward_is_late() -> None:
    of = ledger(MAX_DELAY + 1, default=0.5)
    assert state(of) == ("defaulted", 0.5)
    of.add_reward(0, 1.0, "late")
    assert state(of) == ("late", 0.5)


def test_observed_reward_stays_when_correction_is_late() -> None:
    of = ledger(1)
    of.add_reward(0, 1.0, "learnt")
    for t in range(1, MAX_DELAY + 1):
        of.add_decision(decision(t))
    of.add_reward(0, 2.0, "late")
    assert state(of) == ("observed", 1.0)
    assert of.differences == []


def test_step_without_arm_gets_no_default_reward() -> None:
    of = Ledger("u", 1, 0.5)
    of.add_decision(decision(0, None))
    of.add_decision(decision(1))
    assert state(of) == ("unavailable", None)
    assert of.entries[0].rewards == []


def test_stored_rewards_replace_each_other() -> None:
    of = ledger(1)
    of.add_reward(0, 1.0, "stored")
    of.add_reward(0, 2.0, "stored")
    assert state(of) == ("observed", 2.0)
    assert of.differences == []


@pytest.mark.parametrize(("pooled", "wrong"), [(True, 0), (False, 1)])
def test_pooled_reward_may_be_late_at_the_limit(pooled: bool, wrong: int) -> None:
    of = ledger(MAX_DELAY)
    of.is_pooled = pooled
    of.add_reward(0, 1.0, "late")
    assert len(of.differences) == wrong


@pytest.mark.parametrize(
    ("steps", "status", "message"),
    [
        (1, "corrected", "is corrected; expected: learnt or repaired"),
        (1, "late", "is late; expected: learnt or repaired"),
        (MAX_DELAY + 1, "repaired", "is repaired; expected: late"),
    ],
)
def test_unexpected_status_is_a_difference(steps: int, status: str, message: str) -> None:
    of = ledger(steps)
    of.add_reward(0, 1.0, status)
    assert len(of.differences) == 1
    assert message in of.differences[0]


def test_unexpected_step_is_a_difference() -> None:
    of = ledger(1)
    of.add_decision(decision(2))
    assert of.differences == ["u: decision s.0-2-x is step 2; expected: 1"]


def used_ledger() -> Ledger:
    of = ledger(MAX_DELAY + 2)
    of.add_reward(2, 1.0, "repaired")
    of.add_reward(4, 0.1, "learnt")
    of.add_reward(4, 0.2, "corrected")
    return of


def test_correct_records_have_no_difference() -> None:
    of = used_ledger()
    of.compare(*records(of))
    assert of.differences == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda decisions, rewards: decisions.pop(), "4 decisions; expected: 5"),
        (lambda decisions, rewards: decisions.append(decisions[0]), "6 decisions; expected: 5"),
        (lambda decisions, rewards: decisions.reverse(), "is recorded as"),
        (lambda decisions, rewards: change(decisions, 1, arm="b"), "is recorded as"),
        (lambda decisions, rewards: change(decisions, 1, probabilities={"a": 0.9, "b": 0.1}), "is recorded as"),
        (lambda decisions, rewards: change(decisions, 2, state="late"), "is late; expected: observed"),
        (lambda decisions, rewards: change(decisions, 2, reward=1.0000000000000002), "expected: 1.0"),
        (lambda decisions, rewards: rewards.pop(), "the rewards listed"),
        (lambda decisions, rewards: rewards.append(rewards[-1]), "the rewards listed"),
        (lambda decisions, rewards: rewards.reverse(), "the rewards listed"),
        (lambda decisions, rewards: change(rewards, 0, default=False), "the rewards listed"),
        (lambda decisions, rewards: change(rewards, 0, decision="s.9-0-x"), "rewards of unknown decisions"),
    ],
)
def test_any_change_of_records_is_a_difference(change, message) -> None:
    of = used_ledger()
    decisions, rewards = records(of)
    change(decisions, rewards)
    of.compare(decisions, rewards)
    assert any(message in each for each in of.differences), of.differences


def change(rows, at: int, **values) -> None:
    rows[at] = replace(rows[at], **values)
