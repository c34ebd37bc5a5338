"""A failover of PostgreSQL to a server that lags: stored events are lost, and their numbers are used again."""

from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sql

from larl.service.queries.journal_queries import JournalQueries
from larl.service.queries.overview import Overviews
from larl.service.storage.database import StorageError
from larl.service.storage.tables import snapshots
from tests.service.host import LARL, Host, hosts

pytestmark = pytest.mark.needs("postgres")
LOST = "lost events of the journal that were stored: numbers"


def fail_over(storage: str, last: int) -> None:
    """Remove all events after number `last`, as on a server that has not received them."""
    engine = sql.create_engine(storage)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE journal DISABLE TRIGGER append_only")
        for table in ("journal", "snapshots"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE seq > {last}")
        connection.exec_driver_sql("ALTER TABLE journal ENABLE TRIGGER append_only")
    engine.dispose()


def use(host: Host, name: str, steps: int = 4) -> int:
    """Request decisions for two units and report rewards; return the number of the last event."""
    for i in range(steps):
        decision = host.decide(f"u{i % 2}", f"{name}-{i}")
        host.reward(decision["id"], f"{name}-{i}", float(i % 3))
    return host.journal.last_seq()


def overview(host: Host) -> Any:
    with closing(Overviews(JournalQueries(host.journal))) as fresh:
        return fresh.study("sleep")


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_everything_is_read_again_and_the_loss_is_recorded(postgres: str, pooling: str) -> None:
    with hosts(postgres) as [host], closing(Overviews(host.queries)) as overviews:
        host.create_study(policy=LARL, pooling=pooling)
        host.create_study("closed")
        host.close_study("closed")
        last = use(host, "kept")
        known = use(host, "lost")
        overviews.study("sleep")
        fail_over(postgres, last)
        with pytest.raises(StorageError, match=f"{LOST} {last + 1} to {known}"):
            host.decide("u0", "new")
        assert host.decide("u0", "new")["t"] == 2
        use(host, "lost")  # the same keys, which the journal does not know any more
        assert host.replay() == 9
        [issue] = host.issues()
        assert (issue["severity"], issue["code"]) == ("red", "journal_went_back")
        assert f"{LOST} {last + 1} to {known}" in issue["happened"]
        assert [alert["code"] for alert in host.alerts] == ["journal_went_back"]
        assert host.issues("closed") == []
        assert overviews.study("sleep") == overview(host)


def test_refusal_does_not_rest_on_a_lost_event(postgres: str) -> None:
    with hosts(postgres) as [host]:
        host.create_study()
        last = use(host, "kept")
        host.close_study()
        fail_over(postgres, last)
        with pytest.raises(StorageError, match=LOST):
            host.decide("u0", "new")
        assert host.decide("u0", "new")["t"] == 2
        assert host.replay() == 5


def test_loss_is_noticed_after_other_events_have_the_lost_numbers(postgres: str) -> None:
    with hosts(postgres, 2) as [one, other]:
        one.create_study(policy=LARL)
        last = use(one, "kept")
        known = use(other, "lost")
        one.decide("u0", "read")  # knows the lost events of the other
        with closing(Overviews(other.queries)) as overviews:
            overviews.study("sleep")
            fail_over(postgres, last)
            with pytest.raises(StorageError, match=LOST):
                one.decide("u0", "new")
            assert use(one, "new", 6) > known + 1
            with pytest.raises(StorageError, match=f"{LOST} up to {known + 1}"):
                overviews.study("sleep")
            assert overviews.study("sleep") == overview(other)
        assert other.decide("u0", "other")["t"] == 5
        assert [issue["code"] for issue in one.issues()] == ["journal_went_back"] * 2
        assert one.replay() == 11


def test_snapshots_of_agents_that_know_lost_events_are_not_used(postgres: str) -> None:
    host = Host(postgres)
    host.create_study(policy=LARL)
    last = use(host, "kept")
    use(host, "lost")
    fail_over(postgres, last)
    host.close()
    with hosts(postgres) as [host]:
        use(host, "new")  # its events get the numbers of those that are lost
        host.replay()


def test_snapshot_that_is_newer_than_the_journal_is_not_used(postgres: str) -> None:
    with hosts(postgres) as [host]:
        host.create_study(policy=LARL)
        last = use(host, "kept")
        with host.database.writing() as connection:
            values = {"study": "sleep", "unit": "u0", "seq": last + 1, "made_by": "test", "state": b""}
            connection.execute(snapshots.insert().values(values))
        assert host.journal.snapshot("sleep", "u0", "test") is None
        host.decide("u0", "new")
        assert host.journal.snapshot("sleep", "u0", "test") is not None
