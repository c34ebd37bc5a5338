"""The accounting of a rehearsal: what must be known of rewards that come in every way, and that any change is seen."""

import pytest

from larl.client import DecisionRecord, RewardRecord, ServiceDecision
from larl.rehearsal.ledger import Ledger

PATIENCE = 3


def answer(t: int, arm: str | None = "a") -> ServiceDecision:
    odds = {"a": 1.0, "b": 0.0}
    return ServiceDecision(f"s.0-{t}-x", "s", "u", t, arm, odds, None, None, False, False, "policy", 1, "0", "now")


def ledger(steps: int, default: float | None = None) -> Ledger:
    found = Ledger("u", PATIENCE, default)
    for t in range(steps):
        found.decided(answer(t))
    return found


def known(of: Ledger, t: int = 0) -> tuple[str, float | None]:
    return of.entries[t].state, of.entries[t].reward


def records(of: Ledger) -> tuple[list[DecisionRecord], list[RewardRecord]]:
    """What a service that is right would say."""
    decisions = [DecisionRecord(*each.answer, None, each.state, each.reward, "a", None) for each in of.entries]
    rewards = [
        RewardRecord(each.answer.id, value, None, "?", "now", 0, "u", default)
        for each in of.entries
        for value, default in each.rows
    ]
    return decisions, rewards


def test_in_time() -> None:
    of = ledger(1)
    assert known(of) == ("pending", None)
    of.sent(0, 1.5, "learnt")
    assert known(of) == ("observed", 1.5)
    of.sent(0, 1.5, "repeated")
    assert known(of) == ("observed", 1.5)
    of.sent(0, 2.5, "corrected")
    of.sent(0, 2.5, "repeated")
    assert known(of) == ("corrected", 2.5)
    assert of.entries[0].rows == [(1.5, False), (1.5, False), (2.5, False), (2.5, False)]
    assert of.differences == []


def test_patience_ends_with_the_decision_after_it() -> None:
    of = ledger(PATIENCE)
    of.sent(0, 1.0, "repaired")
    assert known(of) == ("observed", 1.0)
    of = ledger(PATIENCE + 1)
    assert known(of) == ("missing", None)
    assert known(of, 1) == ("pending", None)
    of.sent(0, 1.0, "late")
    assert known(of) == ("late", None)
    assert of.entries[0].rows == [(None, True), (1.0, False)]
    assert of.differences == []


def test_a_default_counts_until_the_end() -> None:
    of = ledger(PATIENCE + 1, default=0.5)
    assert known(of) == ("defaulted", 0.5)
    of.sent(0, 1.0, "late")
    assert known(of) == ("late", 0.5)


def test_what_was_observed_stays_when_more_comes_late() -> None:
    of = ledger(1)
    of.sent(0, 1.0, "learnt")
    for t in range(1, PATIENCE + 1):
        of.decided(answer(t))
    of.sent(0, 2.0, "late")
    assert known(of) == ("observed", 1.0)
    assert of.differences == []


def test_a_moment_without_an_arm_waits_for_nothing() -> None:
    of = Ledger("u", 1, 0.5)
    of.decided(answer(0, None))
    of.decided(answer(1))
    assert known(of) == ("unavailable", None)
    assert of.entries[0].rows == []


def test_a_policy_that_failed_has_stored_what_came() -> None:
    of = ledger(1)
    of.sent(0, 1.0, "stored")
    of.sent(0, 2.0, "stored")
    assert known(of) == ("observed", 2.0)
    assert of.differences == []


@pytest.mark.parametrize(("pooled", "wrong"), [(True, 0), (False, 1)])
def test_other_units_may_end_patience_a_little_earlier(pooled: bool, wrong: int) -> None:
    of = ledger(PATIENCE)
    of.pooled = pooled
    of.sent(0, 1.0, "late")
    assert len(of.differences) == wrong


@pytest.mark.parametrize(
    ("steps", "taken", "said"),
    [
        (1, "corrected", "taken as corrected; it should be learnt or repaired"),
        (1, "late", "taken as late; it should be learnt or repaired"),
        (PATIENCE + 1, "repaired", "taken as repaired; it should be late"),
    ],
)
def test_a_reward_taken_as_it_should_not_be(steps: int, taken: str, said: str) -> None:
    of = ledger(steps)
    of.sent(0, 1.0, taken)
    assert len(of.differences) == 1
    assert said in of.differences[0]


def test_a_step_that_is_not_the_next() -> None:
    of = ledger(1)
    of.decided(answer(2))
    assert of.differences == ["u: decision s.0-2-x is step 2; it should be 1"]


def used() -> Ledger:
    of = ledger(PATIENCE + 2)
    of.sent(2, 1.0, "repaired")
    of.sent(4, 0.1, "learnt")
    of.sent(4, 0.2, "corrected")
    return of


def test_records_that_are_right_are_found_right() -> None:
    of = used()
    of.compare(*records(of))
    assert of.differences == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda decisions, rewards: decisions.pop(), "4 decisions; it should be 5"),
        (lambda decisions, rewards: decisions.append(decisions[0]), "6 decisions; it should be 5"),
        (lambda decisions, rewards: decisions.reverse(), "is kept as"),
        (lambda decisions, rewards: change(decisions, 1, arm="b"), "is kept as"),
        (lambda decisions, rewards: change(decisions, 1, probabilities={"a": 0.9, "b": 0.1}), "is kept as"),
        (lambda decisions, rewards: change(decisions, 2, state="late"), "is late; it should be observed"),
        (lambda decisions, rewards: change(decisions, 2, reward=1.0000000000000002), "it should be 1.0"),
        (lambda decisions, rewards: rewards.pop(), "the rewards listed"),
        (lambda decisions, rewards: rewards.append(rewards[-1]), "the rewards listed"),
        (lambda decisions, rewards: rewards.reverse(), "the rewards listed"),
        (lambda decisions, rewards: change(rewards, 0, default=False), "the rewards listed"),
        (lambda decisions, rewards: change(rewards, 0, decision="s.9-0-x"), "rewards of other decisions"),
    ],
)
def test_any_change_is_seen(change, said) -> None:
    of = used()
    decisions, rewards = records(of)
    change(decisions, rewards)
    of.compare(decisions, rewards)
    assert any(said in each for each in of.differences), of.differences


def change(rows, at: int, **values) -> None:
    rows[at] = rows[at]._replace(**values)
