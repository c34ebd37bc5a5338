"""A damaged row is named wherever it is needed; other units and studies are not affected."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from larl.cli import app
from larl.service import server
from larl.service.core.command_queue import CommandQueue
from larl.service.core.problems import Problem
from larl.service.http import readers
from larl.service.http.routes import queries
from larl.service.ops.row_checks import RowChecks
from larl.service.queries.journal_queries import JournalQueries
from larl.service.storage.database import Database
from larl.service.storage.events import DamagedRow, Event
from larl.service.storage.journal import Journal
from tests.service.host import LARL, decision_command, hosts
from tests.service.sample_journal import SampleHost, write_sample, write_trial
from tests.service.study_client import service_client

NOT_JSON = "answer = replace(answer, '\"arm\":', '\"arm\";')"
NOT_UTF8 = "answer = CAST(replace(CAST(answer AS BLOB), CAST('unit' AS BLOB), x'756eff74') AS TEXT)"
NO_FIELD = "answer = replace(answer, '\"explored\":', '\"exploded\":')"
NO_SOURCE = "answer = replace(answer, '\"policy\"', '\"polidy\"')"
ARM = 'answer = replace(answer, \'"arm":"\', \'"arm":"x\')'
DAMAGE = {NOT_JSON: "its response is not JSON", NOT_UTF8: "its response is not JSON", NO_FIELD: "has no field explored"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A storage with two studies; row 3 is the first decision of unit p0 of study trial."""
    path = tmp_path / "study.db"
    host = SampleHost(f"sqlite:///{path}")
    write_trial(host, units=2, steps=2)
    write_trial(host, "other", units=1, steps=1)
    host.close()
    return path


def change(path: Path, row: int, change: str) -> None:
    """Change a row, as a defective disk would, and remove the snapshots, which do not need it."""
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER IF EXISTS no_update")
        assert connection.execute(f"UPDATE journal SET {change} WHERE seq = {row}").rowcount == 1
        connection.execute("DELETE FROM snapshots")
    connection.close()


def run(*arguments: str) -> Any:
    return typer.testing.CliRunner().invoke(app, [*arguments])


@pytest.mark.parametrize("damage", [*DAMAGE, NO_SOURCE, ARM], ids=["JSON", "UTF-8", "field", "source", "arm"])
def test_damaged_row_leads_to_a_flagged_fallback_decision(path: Path, damage: str) -> None:
    change(path, 3, damage)
    with hosts(f"sqlite:///{path}") as [host]:
        decision = host.decide("p0", "new", "trial")
        assert (decision["source"], decision["fallback"], decision["t"]) == ("fallback", True, 2)
        [issue] = host.issues("trial")
        assert (issue["severity"], issue["code"], issue["unit"]) == ("red", "damage", "p0")
        assert issue["happened"].startswith("row 3 of the journal is damaged: ")
        assert "row 3" in host.alerts[0]["happened"]
        assert host.reward(decision["id"], "reward", 0.5)["status"] == "stored"
        assert host.decide("p1", "new-1", "trial")["source"] == "policy"
        assert host.decide("p0", "new-2", "other")["source"] == "policy"


@pytest.mark.parametrize("damage", DAMAGE, ids=["JSON", "UTF-8", "field"])
def test_queries_and_exports_name_the_damaged_row(path: Path, tmp_path: Path, damage: str) -> None:
    change(path, 3, damage)
    with service_client(tmp_path) as client:
        for query in ("decisions", "overview", "overview?after=1", "unit-overview?unit=p0", "export?format=csv"):
            response = client.get(f"/v1/studies/trial/{query}")
            assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json"), query
            assert "row 3 of the journal is damaged: " in response.json()["detail"]
            assert DAMAGE[damage] in response.json()["detail"]
        repeated = client.post("/v1/studies/trial/decisions", json={"unit": "p0", "key": "k1"})
        assert (repeated.status_code, "row 3 " in repeated.text) == (500, True)  # not the damaged bytes
        for query in ("decisions", "overview", "export?format=csv", "unit-overview?unit=p0"):
            assert client.get(f"/v1/studies/other/{query}").status_code == 200
    for command in ("export --study trial --out x.csv", "backup --out x.gz"):
        words = command.replace("x.", f"{tmp_path}/x.").split()
        done = run(words[0], f"sqlite:///{path}", *words[1:])
        assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
        assert "row 3 of the journal is damaged: " in done.output
    assert not list(tmp_path.glob("x.*"))
    done = run("replay", f"sqlite:///{path}")
    assert (done.exit_code, "mismatch: row 3" in done.output) == (3, True)


def test_policy_before_a_damaged_change_of_policy_does_not_decide(path: Path) -> None:
    with hosts(f"sqlite:///{path}") as [host]:
        host.change_policy("change", 1, LARL, "trial")
        row = host.journal.last_seq()
    change(path, row, NOT_JSON.replace("arm", "study"))
    with hosts(f"sqlite:///{path}") as [host]:
        for _ in range(2):
            with pytest.raises(DamagedRow, match=f"row {row} "):
                host.decide("p0", "new", "trial")


def test_damaged_study_does_not_affect_others(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(path, 1, "answer = replace(answer, '\"config\":', '\"konfig\":')")
    database = Database(f"sqlite:///{path}")
    server.compile_policies(JournalQueries(Journal(database)))
    database.close()
    assert "study trial cannot be used: row 1 of the journal is damaged" in capsys.readouterr().err
    with hosts(f"sqlite:///{path}") as [host]:
        queue = CommandQueue(host.resources)
        commands = [decision_command(unit, "new", study) for unit, study in (("p0", "trial"), ("p0", "other"))]
        refused, decided = queue._replies(host.batch, commands)
        assert isinstance(refused, Problem)
        assert (refused.status, refused.detail[:32]) == (500, "row 1 of the journal is damaged:")
        assert isinstance(decided, bytes)
        assert json.loads(decided)["source"] == "policy"
        queue.close()
    with service_client(path.parent) as client:
        client.headers["Authorization"] = f"Bearer {new_token(path, 'other')}"
        assert [study["study"] for study in client.get("/v1/studies").json()] == ["other"]


def new_token(path: Path, study: str) -> str:
    return str(
        run("token", "create", "--study", study, "--role", "analyst", "--storage", f"sqlite:///{path}").stdout
    ).strip()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(write_sample(tmp_path_factory.mktemp("sample") / "all.db"))
    yield database
    database.close()


def edited(event: Event, column: str, old: str, new: str) -> Event:
    return event._replace(**{column: getattr(event, column).replace(old, new, 1)})


CHANGES: dict[str, tuple[Callable[[Event], Event], str]] = {  # of an event, and what the check says
    "missing": (lambda event: event._replace(seq=event.seq + 1), "it is missing"),
    "kind": (lambda event: event._replace(kind="decisiom"), "its kind is decisiom"),
    "study": (lambda event: event._replace(study="alonf"), "column study differs|no study alonf"),
    "time": (lambda event: edited(event, "at", "Z", "x"), "column at differs from"),
    "spaces": (lambda event: edited(event, "request_json", "{", "{ "), "its request is not written as larl"),
    "response": (lambda event: edited(event, "response_json", ":", ";"), "its response is not JSON"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_check_names_the_first_changed_row(sample: Database, how: str) -> None:
    """Every row of every kind is checked; the changes of the next test are specific to a kind."""
    events, (changed, message) = Journal(sample).select(), CHANGES[how]
    for place in range(0, len(events), 7):
        checks = RowChecks()
        for event in events[:place]:
            checks.check(event)
        with pytest.raises(DamagedRow, match=f"row {place + 1} of the journal is damaged: .*({message})"):
            checks.check(changed(events[place]))


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        ("decision", '"unit":"u1"', '"unit":"u2"', "column unit differs from unit of its response"),
        ("decision", '"t":0', '"t":1', "column number differs from t of its response"),
        ("decision", '"go":0.', '"go":0.2', "probabilities must have sum 1"),
        ("decision", '"source":"policy"', '"source":"qolicy"', "source of its response must be one of"),
        ("reward", '"value":0.5', '"value":0.4', "value of its request differs from that of its response"),
        ("reward", '"status":"learnt"', '"status":"learns"', "status of its response must be one of"),
        ("unit", '"number":0', '"number":1', "column number differs from number of its response"),
        ("issue", '"severity":"red"', '"severity":"ref"', "severity of its response must be one of"),
    ],
)
def test_check_compares_columns_requests_and_responses(
    sample: Database, kind: str, old: str, new: str, message: str
) -> None:
    checks = RowChecks()
    for event in Journal(sample).select():
        if event.kind == kind and old in event.response_json:
            with pytest.raises(DamagedRow, match=f"row {event.seq} .*{message}"):
                checks.check(event._replace(response_json=event.response_json.replace(old, new, 1)))
            return
        checks.check(event)
    raise AssertionError("no such row")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("decision", "its unit has no step 0"), ("unit", "there is no unit"), ("study", "there is no study")],
)
def test_check_finds_gaps_in_steps_units_and_studies(sample: Database, kind: str, message: str) -> None:
    """A row is removed and the later ones are renumbered."""
    events = Journal(sample).select()
    events.remove(next(event for event in events if event.kind == kind))
    with pytest.raises(DamagedRow, match=message):
        check_all(events)


def check_all(events: list[Event]) -> None:
    checks = RowChecks()
    for seq, event in enumerate(events, 1):
        checks.check(event._replace(seq=seq))


def test_export_that_meets_damage_after_its_start_is_incomplete(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in (readers, queries):
        monkeypatch.setattr(module, "SLICE", 1)  # ten lines are sent at once
    with hosts(f"sqlite:///{path}") as [host]:
        for i in range(20):
            host.decide("p0", f"more-{i}", "trial")
        row = host.journal.last_seq()
    change(path, row, NOT_JSON)
    with service_client(tmp_path) as client:
        assert client.get("/v1/studies/trial/export?format=csv").text.count("\n") == 20
    assert f"row {row} of the journal is damaged: its response is not JSON" in caplog.text
