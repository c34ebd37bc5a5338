"""A cohort's file: exact, whole or absent, refused when it is not what was written."""

import json
from pathlib import Path

import pytest

import larl
from larl.live import shared_history as _together
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import SPEC, same

UNITS = ("x", "y", "z")


def grown(pooling: str, rounds: int = 30, max_delay: int = 4) -> larl.Cohort:
    cohort = larl.Cohort(SPEC, ["a", "b"], seed=9, pooling=pooling, min_probability=0.1, max_delay=max_delay)
    for i in range(3 * rounds):
        decision = cohort.decide(UNITS[i % 3] if i > 40 else UNITS[i % 2])
        if i % 4:
            cohort.observe(decision, float(i % 5) - 2.0)
    return cohort


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_cohort_goes_on_from_its_file_as_if_nothing_had_been(pooling: str, tmp_path: Path) -> None:
    cohort = grown(pooling)
    late = cohort.decide("y")
    again = larl.Cohort.load(cohort.save(tmp_path / "cohort.json"))
    assert (again.policy, again.pooling, again.units, again.counts) == (SPEC, pooling, cohort.units, cohort.counts)
    assert again.t == cohort.t
    for unit in ("z", "new", "x", "new", "y"):
        one, other = cohort.decide(unit), again.decide(unit)
        assert one == other
        assert cohort.observe(one, 0.3) == again.observe(other, 0.3)
    assert cohort.observe(late, 1.0) == again.observe(late.id, 1.0) == "repaired"
    assert all(same(cohort.state(unit), again.state(unit)) for unit in cohort.units)
    again.save(tmp_path / "cohort.json")


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_reward_in_time_is_in_time_after_a_cohort_was_read(pooling: str, tmp_path: Path) -> None:
    cohort = grown(pooling)
    last = cohort.decide("y")
    again = larl.Cohort.load(cohort.save(tmp_path / "cohort.json"))
    assert cohort.observe(last, 0.5) == again.observe(last.id, 0.5) == "learnt"


WRONG = {
    "cut short": lambda text: text[: len(text) // 2],
    "edited or damaged": lambda text: json.dumps(json.loads(text) | {"pooling": "none"}),
    "not a cohort's file": lambda _: "time,action,reward\n0,1,2\n",
    "no format 'larl.cohort'": lambda text: text.replace("larl.cohort", "larl.agent"),
    "schema 99": lambda text: json.dumps(json.loads(text) | {"schema": 99}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_is_refused_and_left_alone(wrong: str, tmp_path: Path) -> None:
    path = grown("full").save(tmp_path / "cohort.json")
    text = WRONG[wrong](path.read_text())
    path.write_text(text)
    with pytest.raises(larl.InvalidFile, match=wrong):
        larl.Cohort.load(path)
    with pytest.raises(larl.InvalidFile, match=wrong):
        grown("full").save(path)
    assert path.read_text() == text


def test_another_cohort_is_not_overwritten(tmp_path: Path) -> None:
    path = grown("full").save(tmp_path / "cohort.json")
    with pytest.raises(larl.InvalidValue, match="the file of this cohort; that one has pooling = 'full'"):
        grown("partial").save(path)
    with pytest.raises(larl.InvalidFile, match="not an agent's file"):
        larl.Agent.load(path)
    assert larl.Cohort.load(path).pooling == "full"


@pytest.mark.parametrize("pooling", POOLINGS)
def test_neither_the_file_nor_the_past_grows_with_time(pooling: str, tmp_path: Path) -> None:
    """300 units' worth of decisions are forgotten; those of a unit that is gone hold nobody's past."""
    few, many = (grown(pooling, rounds) for rounds in (400, 2000))
    sizes = [each.save(tmp_path / f"{each.t}.json").stat().st_size for each in (few, many)]
    assert sizes[1] < 1.2 * sizes[0]
    if pooling == "none":
        return
    gone = many.decide("gone")
    for _ in range(1000):
        many.observe(many.decide("x"), 0.0)
    past = many._past
    assert isinstance(past, _together.Together)
    assert many.observe(gone, 1.0) == "late"
    assert past.unit.size <= 1024
    assert len(past.marks) < 10


def test_copies_are_few_where_units_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds of 500 units, told at once: at most one unit's State is copied a decision."""
    copied, mark = [], _together.Together._mark

    def counted(self: _together.Together) -> _together.Mark:
        copied.append(self.units)
        return mark(self)

    monkeypatch.setattr(_together.Together, "_mark", counted)
    cohort = larl.Cohort(SPEC, 2, pooling="full")
    for _ in range(3):
        for unit in range(500):
            cohort.observe(cohort.decide(f"{unit}"), 1.0)
    assert sum(copied) <= cohort.t
    copied.clear()
    decisions = [cohort.decide(f"{unit}") for unit in range(500)]
    for decision in reversed(decisions):
        assert cohort.observe(decision, 2.0) in ("learnt", "repaired")
    cohort.state("0")
    assert sum(copied) <= 2 * 500  # all of them mended in one go
