"""Snapshots and the memory of agents: decisions are those of an agent that has learnt from all events."""

import logging
import random
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from larl.service.clock import now
from larl.service.core import agents, snapshots
from larl.service.core.agent_cache import AgentCache
from larl.service.core.agents import AgentHandle
from larl.service.core.snapshots import InvalidSnapshot, read_snapshot
from tests.service.host import LARL, Host, hosts

STEPS = 12


def _play(host: Host, unit: str, first: int, count: int, seed: int = 0) -> list[Any]:
    """Decide and send rewards, some late; return what was decided."""
    generator, found, waiting = random.Random(f"{seed}-{unit}-{first}"), [], []
    for i in range(first, first + count):
        decision = host.decide(unit, f"{unit}-{i}")
        found.append((decision["arm"], decision["probabilities"], decision["expected"], decision["source"]))
        waiting.append(decision["id"])
        while waiting and generator.random() < 0.6:
            name = waiting.pop(generator.randrange(len(waiting)))
            host.reward(name, f"{name}-{generator.random()}", generator.gauss(0.0, 1.0))
    return found


def _expected(storage: str, pooling: str = "none", **study: Any) -> dict[str, list[Any]]:
    """Return the decisions of two units without a restart, in a storage of their own."""
    with hosts(storage) as [host]:
        host.create_study(policy=LARL, pooling=pooling, **study)
        return {f"{unit}{part}": _play(host, unit, part * STEPS, STEPS) for part in range(2) for unit in "uv"}


def _write_half(storage: str, pooling: str = "none", **study: Any) -> None:
    with hosts(storage) as [host]:
        host.create_study(policy=LARL, pooling=pooling, **study)
        for unit in "uv":
            _play(host, unit, 0, STEPS)


def _second_half(storage: str) -> dict[str, list[Any]]:
    with hosts(storage) as [host]:
        found = {f"{unit}1": _play(host, unit, STEPS, STEPS) for unit in "uv"}
        host.replay()
    return found


def _rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT unit, seq, state FROM snapshots ORDER BY unit").fetchall()


def _change(path: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_agent_from_a_snapshot_decides_as_before(
    tmp_path: Path, pooling: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = _expected(f"sqlite:///{tmp_path}/whole.db", pooling)
    storage = f"sqlite:///{tmp_path}/study.db"
    _write_half(storage, pooling)
    assert len(_rows(tmp_path / "study.db")) == (2 if pooling == "none" else 1)
    assert _second_half(storage) == {name: expected[name] for name in ("u1", "v1")}
    assert "snapshot" not in caplog.text


def _wrong_seq(path: Path) -> None:
    _change(path, "UPDATE snapshots SET seq = seq - 1")


def _swap_units(path: Path) -> None:
    [(_, _, one), (_, _, other)] = _rows(path)
    _change(path, "UPDATE snapshots SET state = CASE unit WHEN 'u' THEN ? ELSE ? END", other, one)


def _swap_rows(path: Path) -> None:
    """Each unit gets the whole row of the other."""
    _change(path, "UPDATE snapshots SET unit = CASE unit WHEN 'u' THEN 'x' ELSE 'y' END")
    _change(path, "UPDATE snapshots SET unit = CASE unit WHEN 'x' THEN 'v' ELSE 'u' END")


def _cut(path: Path) -> None:
    _change(path, "UPDATE snapshots SET state = substr(state, 1, length(state) / 2)")


def _empty(path: Path) -> None:
    _change(path, "UPDATE snapshots SET state = x''")


@pytest.mark.parametrize("damage", [_wrong_seq, _swap_units, _swap_rows, _cut, _empty])
def test_wrong_snapshot_is_not_used(tmp_path: Path, damage: Any, caplog: pytest.LogCaptureFixture) -> None:
    expected = _expected(f"sqlite:///{tmp_path}/whole.db")
    storage = f"sqlite:///{tmp_path}/study.db"
    _write_half(storage)
    damage(tmp_path / "study.db")
    with caplog.at_level(logging.WARNING, "larl.service"):
        assert _second_half(storage) == {name: expected[name] for name in ("u1", "v1")}
    assert caplog.text.count("is not used") == 2


def test_snapshot_of_events_that_the_journal_does_not_have_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover to a standby that lags: the last event of `u` is another one."""
    storage = f"sqlite:///{tmp_path}/study.db"
    _write_half(storage)
    snapshot = dict(zip(("unit", "seq", "state"), _rows(tmp_path / "study.db")[0], strict=True))
    (tmp_path / "other").mkdir()
    other = f"sqlite:///{tmp_path}/other/study.db"
    expected = _expected(f"sqlite:///{tmp_path}/whole.db")
    _write_half(other)
    _change(tmp_path / "other/study.db", "UPDATE snapshots SET state = ? WHERE unit = 'u'", snapshot["state"])
    with caplog.at_level(logging.WARNING, "larl.service"):
        assert _second_half(other) == {name: expected[name] for name in ("u1", "v1")}
    assert "the journal has other events" in caplog.text


def test_every_flipped_bit_of_a_snapshot_is_noticed(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    _write_half(storage)
    with hosts(storage) as [host], host.database.reading() as connection:
        row = connection.exec_driver_sql("SELECT * FROM snapshots LIMIT 1").one()
    assert read_snapshot(row).seq == row.seq
    generator = random.Random(1)
    places = [*range(8 * 48), *(generator.randrange(8 * len(row.state)) for _ in range(500))]
    for place in places:
        state = bytearray(row.state)
        state[place // 8] ^= 1 << place % 8
        with pytest.raises(InvalidSnapshot):
            read_snapshot(SimpleNamespace(**dict(row._mapping) | {"state": bytes(state)}))


def test_flipped_bit_does_not_change_decisions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = _expected(f"sqlite:///{tmp_path}/whole.db")
    storage, path = f"sqlite:///{tmp_path}/study.db", tmp_path / "study.db"
    _write_half(storage)
    for unit, _, state in _rows(path):
        damaged = bytearray(state)
        damaged[-len(damaged) // 3] ^= 4
        _change(path, "UPDATE snapshots SET state = ? WHERE unit = ?", bytes(damaged), unit)
    assert _second_half(storage) == {name: expected[name] for name in ("u1", "v1")}
    assert caplog.text.count("its checksum does not match") == 2


def test_evicted_agents_decide_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One agent fits into memory. Its snapshot is found before and after it is written, or there is none."""

    def decisions(name: str, **options: Any) -> list[Any]:
        with hosts(f"sqlite:///{tmp_path}/{name}.db", **options) as [host]:
            host.create_study(policy=LARL)
            found = [_play(host, unit, i, 1) for i in range(STEPS) for unit in "uv"]
            assert len(host.resources.cache.of("sleep")) == (1 if options else 2)
            host.replay()
            return found

    expected = decisions("all")
    assert decisions("evicted", memory=1) == expected
    monkeypatch.setattr(snapshots.SnapshotWriter, "save", lambda *_: None)
    assert decisions("without", memory=1) == expected


def test_snapshots_are_written_after_enough_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "SNAPSHOT_EVERY", 4)
    with hosts(f"sqlite:///{tmp_path}/study.db") as [host]:
        host.create_study(policy=LARL)
        for i in range(3):
            host.decide("u", str(i))
        host.batch.save_due()
        host.resources.snapshots.flush()
        assert _rows(tmp_path / "study.db") == []
        last = host.decide("u", "3")
        host.batch.save_due()
        host.resources.snapshots.flush()
        [(unit, seq, _)] = _rows(tmp_path / "study.db")
        events = [event for event in host.journal.select() if event.ref == last["id"]]
        assert (unit, seq) == ("u", events[0].seq)


def test_memory_of_agents_is_what_they_hold(tmp_path: Path) -> None:
    """The checkpoints that an agent keeps are counted when it keeps them; a cohort is counted."""
    for pooling in ("none", "full"):
        with hosts(f"sqlite:///{tmp_path}/{pooling}.db") as [host]:
            host.create_study(policy=LARL, pooling=pooling, max_delay=4)
            cache, sizes = host.resources.cache, []
            for i in range(12):
                host.decide("u", str(i))
                [(_, handle)] = cache.of("sleep")
                sizes.append(cache.bytes)
                assert cache.bytes == handle.size == handle.update_size()
            assert sizes[0] > agents.OVERHEAD
            assert sizes[-1] > sizes[0]


def test_study_with_the_most_memory_gives_up_its_agents_first() -> None:
    class Handle:
        def __init__(self, study: str, unit: str, size: int) -> None:
            self.place, self.size, self._size = (study, unit), 0, size
            self.config = type("Config", (), {"is_pooled": study == "cohort"})

        def update_size(self) -> int:
            self.size = self._size
            return self.size

    cache, evicted = AgentCache(100), []
    for study, unit, size in [
        ("cohort", "", 20),
        ("small", "1", 10),
        ("large", "1", 30),
        ("large", "2", 30),
        ("large", "3", 30),
        ("small", "2", 10),
        ("huge", "1", 500),
    ]:
        handle: Any = Handle(study, unit, size)
        evicted.append([place for place, _ in cache.put(handle.place, handle)])
        assert cache.get(handle.place) is handle
    assert evicted[:6] == [[], [], [], [], [("large", "1")], []]
    assert set(evicted[6]) == {("large", "2"), ("large", "3"), ("small", "1"), ("small", "2")}
    assert cache.bytes == 520
    assert cache.get(("cohort", "")) is not None


def test_handle_that_knows_events_that_are_not_stored_is_not_saved(tmp_path: Path) -> None:
    with hosts(f"sqlite:///{tmp_path}/study.db") as [host]:
        host.create_study(policy=LARL)
        host.decide("u", "1")
        [(_, handle)] = host.resources.cache.of("sleep")
        assert handle.is_stored
        AgentHandle.decide(handle, "u", None, None, now())
        assert not handle.is_stored
        host.batch.close()
        host.resources.snapshots.flush()
        assert _rows(tmp_path / "study.db") == []
        host.resources.cache.drop(("sleep", "u"))
