"""Exports of a study: CSV, Parquet, Vowpal Wabbit and lifejacket."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer.testing
import vowpalwabbit
from pyarrow import parquet
from starlette.testclient import TestClient

from larl._core.validation import InvalidValue
from larl.cli import app
from larl.service.app import make_app
from larl.service.export.files import export
from larl.service.export.table import Table, csv_line
from larl.service.http.auth import Auth
from larl.service.queries.journal_queries import JournalQueries
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.optional import LIFEJACKET
from tests.service.host import LARL, UCB
from tests.service.sample_journal import SampleHost, write_sample


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_sample(tmp_path_factory.mktemp("export") / "all.db")


def write_export(url: str, study: str, kind: str, out: Path, fill: float | None = None) -> dict[str, int]:
    """Export a study; return how many decisions were left out, by reason."""
    database = Database(url)
    try:
        return export(Table(Journal(database), study), kind, out, fill)
    finally:
        database.close()


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_decision_as_the_service_returns_it(url: str, tmp_path: Path) -> None:
    assert write_export(url, "alone", "csv", tmp_path / "a.csv") == {}
    rows = read_csv(tmp_path / "a.csv")
    database = Database(url)
    records = JournalQueries(Journal(database)).decisions("alone", limit=1000)["items"]
    database.close()
    assert [row["id"] for row in rows] == [each["id"] for each in records]
    for row, each in zip(rows, records, strict=True):
        for name in ("reward", "expected", "width"):
            assert (float(row[name]) if row[name] else None) == each[name]
        for name in ("arm", "played", "state", "source", "reason", "unit", "at"):
            assert row[name] == (each[name] or "")
        assert {arm: row[f"p_{arm}"] for arm in ("stay", "go")} == {
            arm: repr(each["probabilities"][arm]) if each["probabilities"] else "" for arm in ("stay", "go")
        }
        assert (row["available"], int(row["t"]), int(row["policy_version"])) == (
            str(each["arm"] is not None).lower(),
            each["t"],
            each["policy_version"],
        )
    assert {row["state"] for row in rows} >= {"observed", "corrected", "missing", "defaulted", "late", "unavailable"}
    assert [row["offered"] for row in rows if row["offered"]] == ['["go"]', "[]"]


def test_text_of_a_csv_file_is_no_formula(tmp_path: Path) -> None:
    """One apostrophe is added and can be removed. Numbers are not changed; `larl diagnose` reads the file."""
    host = SampleHost(f"sqlite:///{tmp_path / 'formulas.db'}")
    arms = ["=HYPERLINK(1)", "+1", "-1", "@x", "'=x", "plain"]
    host.create_study("trial", UCB, arms, min_probability=0.1)
    for i, arm in enumerate([*arms, *arms]):
        host.reward(host.ingest("trial", "-5", arm, reason="=1+1"), -1.5 * i)
    host.close()
    write_export(host.url, "trial", "csv", tmp_path / "a.csv")
    rows = read_csv(tmp_path / "a.csv")
    for row in rows:
        cells = [row[name] for name in ("unit", "arm", "played", "reason", "id", "at")]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {(row["unit"], row["reason"]) for row in rows} == {("'-5", "'=1+1")}
    assert [row["arm"].removeprefix("'") for row in rows[:5]] == arms[:5]
    assert [float(row["reward"]) for row in rows] == [-1.5 * i for i in range(12)]
    columns = ("--action", "arm", "--reward", "reward", "--unit", "unit")
    done = typer.testing.CliRunner().invoke(app, ["diagnose", str(tmp_path / "a.csv"), *columns, "--no-replay"])
    assert done.exit_code == 0, done.output
    assert csv_line(["\t=1", "=1", -1.5]) == "'\t=1,'=1,-1.5\n"


def test_each_number_of_a_context_has_a_column(url: str, tmp_path: Path) -> None:
    write_export(url, "together", "csv", tmp_path / "a.csv")
    assert [(row["context_0"], row["context_1"]) for row in read_csv(tmp_path / "a.csv")[:3]] == [
        ("0.5", "0.0"),
        ("0.5", "1.0"),
        ("0.5", "2.0"),
    ]


@pytest.mark.parametrize("study", ["alone", "together"])
def test_parquet_has_the_same_table(url: str, tmp_path: Path, study: str) -> None:
    write_export(url, study, "parquet", tmp_path / "a.parquet")
    write_export(url, study, "csv", tmp_path / "a.csv")
    found = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    as_text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in found]
    bools = ("available", "delivered", "explored")
    assert [row | {name: row[name].lower() for name in bools} for row in as_text] == read_csv(tmp_path / "a.csv")
    assert {type(row["reward"]) for row in found} == {float, type(None)}


def test_parquet_without_its_library_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidValue, match=r"pip install 'larl\[parquet\]'"):
        write_export(url, "alone", "parquet", tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_vw_has_decisions_with_a_reward_and_a_probability(url: str, tmp_path: Path) -> None:
    left_out = write_export(url, "alone", "vw", tmp_path / "a.vw")
    write_export(url, "alone", "csv", tmp_path / "a.csv")
    rows = read_csv(tmp_path / "a.csv")
    usable = [r for r in rows if r["reward"] and r["arm"] == r["played"] and r["p_" + r["arm"]]]
    lines = (tmp_path / "a.vw").read_text().splitlines()
    assert len(lines) + sum(left_out.values()) == len(rows)
    assert set(left_out) == {
        "no reward",
        "no arm was available",
        "the probability is not known",
        "another arm was played than decided",
    }
    for line, row in zip(lines, usable, strict=True):
        label, _, features = line.partition(" |")
        action, cost, probability = label.split(":")
        assert (int(action), float(cost)) == (1 + ["stay", "go"].index(row["arm"]), -float(row["reward"]))
        assert (probability, features) == (row["p_" + row["arm"]], "")


def test_vw_has_contexts_and_available_arms(tmp_path: Path) -> None:
    host = SampleHost(f"sqlite:///{tmp_path / 's.db'}")
    host.create_study("s", LARL | {"context": 1}, arms=("a", "b", "c"), seed=2)
    decision = host.decision("s", "u", available=["b", "c"], context=[0.5])
    host.reward(decision["id"], 0.0)
    host.close()
    write_export(host.url, "s", "vw", tmp_path / "a.vw")
    chosen, other = (2, 3) if decision["arm"] == "b" else (3, 2)
    assert (tmp_path / "a.vw").read_text() == f"{chosen}:0.0:0.5 {other} | context_0:0.5\n"


def test_vowpal_wabbit_parses_the_export(tmp_path: Path) -> None:
    host = SampleHost(f"sqlite:///{tmp_path / 's.db'}")
    host.create_study("s", LARL | {"context": 2}, arms=("a", "b"), seed=2, min_probability=0.1)
    decisions = []
    for i in range(20):
        decisions.append(host.decision("s", f"u{i % 3}", context=[0.5, i / 8]))
        host.reward(decisions[-1]["id"], -1e-7 if i == 4 else i / 16)
    host.close()
    write_export(host.url, "s", "vw", tmp_path / "a.vw")
    lines = (tmp_path / "a.vw").read_text().splitlines()
    weights: list[list[float]] = []
    bandit = vowpalwabbit.LabelType.CONTEXTUAL_BANDIT
    workspace = vowpalwabbit.Workspace("--cb 2 --quiet")
    for i, (line, decision) in enumerate(zip(lines, decisions, strict=True)):
        example = workspace.parse(line, bandit)
        [label] = example.get_label(bandit).costs
        found = (label.action, label.cost, label.probability)
        expected = (
            1 + "ab".index(decision["arm"]),
            1e-7 if i == 4 else -i / 16,
            decision["probabilities"][decision["arm"]],
        )
        assert found == pytest.approx(expected, rel=1e-6)  # in single precision
        weights.append([example.feature_weight(" ", j) for j in range(example.num_features_in(" "))])
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    for i, found in enumerate(weights):
        assert found == pytest.approx([0.5, i / 8] if i else [0.5], rel=1e-6)


def run_lifejacket_checks(path: Path) -> "subprocess.CompletedProcess[str]":
    """Run lifejacket's checks of a file with a Python that has lifejacket."""
    script = Path(__file__).parent / "lifejacket_checks.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([LIFEJACKET, str(script), str(path)], capture_output=True, text=True, env=environment)


needs_lifejacket = pytest.mark.needs("lifejacket")


@needs_lifejacket
@pytest.mark.parametrize(("study", "fill", "rows"), [("trial", None, 24), ("together", 0.0, 36)])
def test_lifejacket_accepts_the_export(url: str, tmp_path: Path, study: str, fill: float | None, rows: int) -> None:
    write_export(url, study, "lifejacket", tmp_path / "a.csv", fill)
    done = run_lifejacket_checks(tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"passed {rows}"


@needs_lifejacket
def test_lifejacket_refuses_an_incomplete_export(url: str, tmp_path: Path) -> None:
    write_export(url, "trial", "lifejacket", tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:3] + lines[4:]))
    assert "Not all subjects have all calendar times" in run_lifejacket_checks(tmp_path / "a.csv").stderr


def test_lifejacket_columns_of_participation_and_policy(url: str, tmp_path: Path) -> None:
    write_export(url, "together", "lifejacket", tmp_path / "a.csv", 0.0)
    frame = pd.read_csv(tmp_path / "a.csv")
    assert frame.groupby("user_id").calendar_t.apply(list).tolist() == [list(range(9))] * 4
    assert frame[frame.in_study == 1].groupby("user_id").size().to_dict() == {"a": 5, "b": 4, "c": 9, "d": 2}
    assert frame[frame.in_study == 0].reward.isna().all()
    unavailable = frame[frame.available == 0]
    columns = (unavailable.action, unavailable.action1prob, unavailable.reward)
    assert tuple(column.tolist() for column in columns) == ([0.0], [0.0], [0.0])
    assert sorted(frame[frame.in_study == 1].policy_num.unique()) == [0, 1]


def write_unusable_study(host: SampleHost, what: str) -> None:
    """Write a study that lifejacket cannot use because of its arms, a reward, a probability, and so on."""
    host.create_study("s", UCB, seed=1, arms=("a", "b", "c") if what == "arms" else ("a", "b"))
    if what == "source":
        host.reward(host.ingest("s", "u", "a", probabilities={"a": 0.5, "b": 0.5}), 1.0)
    elif what == "probability":
        host.reward(host.ingest("s", "u", "a"), 1.0)
    else:
        decision = host.decision("s", "u")
        if what == "played":
            host.reward(decision["id"], 1.0, arm="b" if decision["arm"] == "a" else "a")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("arms", r"two arms \(action 0 and action 1 of lifejacket\)"),
        ("reward", r"reward of s\.0-0-\w+ \(unit u, t 0\) = None .* --fill replaces missing rewards"),
        ("probability", "it was not reported with the decision"),
        ("played", "the probability of the arm played instead is not known"),
        ("source", "a study with a decision of a policy"),
    ],
)
def test_study_that_lifejacket_cannot_use_is_refused(tmp_path: Path, what: str, message: str) -> None:
    host = SampleHost(f"sqlite:///{tmp_path / 's.db'}")
    write_unusable_study(host, what)
    host.close()
    with pytest.raises(InvalidValue, match=message):
        write_export(host.url, "s", "lifejacket", tmp_path / "out" / "a.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["csv", "vw"])
def test_export_over_http_needs_the_permission_to_read(url: str, tmp_path: Path, kind: str) -> None:
    write_export(url, "alone", kind, tmp_path / "a")
    database = Database(url, write=True)
    roles = {role: Auth(database).create("alone", role) for role in ("analyst", "host")}
    with TestClient(make_app(database)) as client:

        def get(role: str, study: str, **query: Any) -> Any:
            headers = {"authorization": f"Bearer {roles[role]}"}
            return client.get(f"/v1/studies/{study}/export", params=query, headers=headers)

        found = get("analyst", "alone", format=kind)
        assert (found.status_code, found.text) == (200, (tmp_path / "a").read_text())
        assert found.headers["content-type"].startswith("text/csv" if kind == "csv" else "text/plain")
        assert get("host", "alone").status_code == 403
        assert get("analyst", "trial").status_code == 403
        assert get("analyst", "alone", format="parquet").status_code == 422
    database.close()


def test_export_command(url: str, tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        return typer.testing.CliRunner().invoke(app, ["export", url, *arguments, "--out", str(tmp_path / "a.txt")])

    done = run("--study", "alone", "--format", "vw")
    assert done.exit_code == 0, done.output
    assert "left out: 1, no arm was available" in done.stdout
    assert run("--study", "none").exit_code == 2
    assert run("--study", "alone", "--format", "xls").exit_code == 2
    assert [path for path in tmp_path.iterdir() if path.name != "a.txt"] == []
