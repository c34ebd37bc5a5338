"""A cohort's file is exact and written atomically; a damaged or foreign file is refused."""

import json
from pathlib import Path

import pytest

import larl
from larl.live.shared_history import SharedCheckpoint, SharedHistory
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import SPEC, same

UNITS = ("x", "y", "z")


def make_cohort(pooling: str, rounds: int = 30, max_delay: int = 4) -> larl.Cohort:
    cohort = larl.Cohort(SPEC, ["a", "b"], seed=9, pooling=pooling, min_probability=0.1, max_delay=max_delay)
    for i in range(3 * rounds):
        decision = cohort.decide(UNITS[i % 3] if i > 40 else UNITS[i % 2])
        if i % 4:
            cohort.observe(decision, float(i % 5) - 2.0)
    return cohort


@pytest.mark.parametrize("pooling", POOLINGS)
def test_loaded_cohort_continues_identically(pooling: str, tmp_path: Path) -> None:
    cohort = make_cohort(pooling)
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
def test_reward_of_last_decision_is_in_time_after_loading(pooling: str, tmp_path: Path) -> None:
    cohort = make_cohort(pooling)
    last = cohort.decide("y")
    again = larl.Cohort.load(cohort.save(tmp_path / "cohort.json"))
    assert cohort.observe(last, 0.5) == again.observe(last.id, 0.5) == "learnt"


DAMAGED = {
    "is incomplete": lambda text: text[: len(text) // 2],
    "edited or damaged": lambda text: json.dumps(json.loads(text) | {"pooling": "none"}),
    "is not the file of a cohort": lambda _: "time,action,reward\n0,1,2\n",
    "no format 'larl.cohort'": lambda text: text.replace("larl.cohort", "larl.agent"),
    "schema 99": lambda text: json.dumps(json.loads(text) | {"schema": 99}),
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged_file_is_refused_and_not_overwritten(message: str, tmp_path: Path) -> None:
    path = make_cohort("full").save(tmp_path / "cohort.json")
    text = DAMAGED[message](path.read_text())
    path.write_text(text)
    with pytest.raises(larl.InvalidFile, match=message):
        larl.Cohort.load(path)
    with pytest.raises(larl.InvalidFile, match=message):
        make_cohort("full").save(path)
    assert path.read_text() == text


def test_file_of_other_cohort_is_not_overwritten(tmp_path: Path) -> None:
    path = make_cohort("full").save(tmp_path / "cohort.json")
    with pytest.raises(larl.InvalidValue, match="the file of this cohort; that file has pooling = 'full'"):
        make_cohort("partial").save(path)
    with pytest.raises(larl.InvalidFile, match="is not the file of an agent"):
        larl.Agent.load(path)
    assert larl.Cohort.load(path).pooling == "full"


@pytest.mark.parametrize("pooling", POOLINGS)
def test_file_and_log_do_not_grow_with_time(pooling: str, tmp_path: Path) -> None:
    """Old decisions are dropped, also those after the last decision of a unit that left."""
    few, many = (make_cohort(pooling, rounds) for rounds in (400, 2000))
    sizes = [each.save(tmp_path / f"{each.t}.json").stat().st_size for each in (few, many)]
    assert sizes[1] < 1.2 * sizes[0]
    if pooling == "none":
        return
    gone = many.decide("gone")
    for _ in range(1000):
        many.observe(many.decide("x"), 0.0)
    history = many._history
    assert isinstance(history, SharedHistory)
    assert many.observe(gone, 1.0) == "late"
    assert history.unit.size <= 1024
    assert len(history.checkpoints) < 10


def test_checkpoints_copy_at_most_one_unit_per_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 units: checkpoints copy at most one unit's State per decision."""
    copied, checkpoint = [], SharedHistory._checkpoint

    def counting(self: SharedHistory) -> SharedCheckpoint:
        copied.append(self.units)
        return checkpoint(self)

    monkeypatch.setattr(SharedHistory, "_checkpoint", counting)
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
    assert sum(copied) <= 2 * 500  # all of them are replayed at once
