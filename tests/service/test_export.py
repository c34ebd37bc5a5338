"""What is exported is what is stored, in the words of whoever reads it."""

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
from larl.service.export.table import Table
from larl.service.http.auth import Auth
from larl.service.queries.journal_queries import JournalQueries
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.optional import LIFEJACKET
from tests.service import records


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return records.everything(tmp_path_factory.mktemp("export") / "all.db")


def exported(url: str, study: str, kind: str, out: Path, fill: float | None = None) -> dict[str, int]:
    database = Database(url)
    try:
        return export(Table(Journal(database), study), kind, out, fill)
    finally:
        database.close()


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_has_every_decision_as_the_service_shows_it(url: str, tmp_path: Path) -> None:
    assert exported(url, "alone", "csv", tmp_path / "a.csv") == {}
    rows = read(tmp_path / "a.csv")
    database = Database(url)
    seen = JournalQueries(Journal(database)).decisions("alone", limit=1000)["items"]
    database.close()
    assert [row["id"] for row in rows] == [each["id"] for each in seen]
    for row, each in zip(rows, seen, strict=True):
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


def test_contexts_have_columns_of_their_own(url: str, tmp_path: Path) -> None:
    exported(url, "together", "csv", tmp_path / "a.csv")
    assert [(row["context_0"], row["context_1"]) for row in read(tmp_path / "a.csv")[:3]] == [
        ("0.5", "0.0"),
        ("0.5", "1.0"),
        ("0.5", "2.0"),
    ]


@pytest.mark.parametrize("study", ["alone", "together"])
def test_parquet_is_the_same_table(url: str, tmp_path: Path, study: str) -> None:
    exported(url, study, "parquet", tmp_path / "a.parquet")
    exported(url, study, "csv", tmp_path / "a.csv")
    found = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    told = [{name: "" if value is None else str(value) for name, value in row.items()} for row in found]
    bools = ("available", "delivered", "explored")
    assert [row | {name: row[name].lower() for name in bools} for row in told] == read(tmp_path / "a.csv")
    assert {type(row["reward"]) for row in found} == {float, type(None)}


def test_parquet_without_its_library_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidValue, match=r"pip install 'larl\[parquet\]'"):
        exported(url, "alone", "parquet", tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_vowpal_wabbit_gets_what_has_a_reward_and_a_probability(url: str, tmp_path: Path) -> None:
    left = exported(url, "alone", "vw", tmp_path / "a.vw")
    exported(url, "alone", "csv", tmp_path / "a.csv")
    rows = read(tmp_path / "a.csv")
    usable = [r for r in rows if r["reward"] and r["arm"] == r["played"] and r["p_" + r["arm"]]]
    lines = (tmp_path / "a.vw").read_text().splitlines()
    assert len(lines) + sum(left.values()) == len(rows)
    assert set(left) == {
        "no reward",
        "no arm was available",
        "the probability is not known",
        "another arm was played than decided",
    }
    for line, row in zip(lines, usable, strict=True):
        label, _, features = line.partition(" |")
        action, cost, chance = label.split(":")
        assert (int(action), float(cost)) == (1 + ["stay", "go"].index(row["arm"]), -float(row["reward"]))
        assert (chance, features) == (row["p_" + row["arm"]], "")


def test_vowpal_wabbit_gets_contexts_and_the_arms_that_were_offered(tmp_path: Path) -> None:
    host = records.Host(f"sqlite:///{tmp_path / 's.db'}")
    host.study("s", records.LARL | {"context": 1}, arms=("a", "b", "c"), seed=2)
    made = host.decision("s", "u", available=["b", "c"], context=[0.5])
    host.reward(made["id"], 0.0)
    host.close()
    exported(host.url, "s", "vw", tmp_path / "a.vw")
    chosen, other = (2, 3) if made["arm"] == "b" else (3, 2)
    assert (tmp_path / "a.vw").read_text() == f"{chosen}:0.0:0.5 {other} | context_0:0.5\n"


def test_vowpal_wabbit_reads_what_is_meant(tmp_path: Path) -> None:
    host = records.Host(f"sqlite:///{tmp_path / 's.db'}")
    host.study("s", records.LARL | {"context": 2}, arms=("a", "b"), seed=2, min_probability=0.1)
    made = []
    for i in range(20):
        made.append(host.decision("s", f"u{i % 3}", context=[0.5, i / 8]))
        host.reward(made[-1]["id"], -1e-7 if i == 4 else i / 16)
    host.close()
    exported(host.url, "s", "vw", tmp_path / "a.vw")
    lines = (tmp_path / "a.vw").read_text().splitlines()
    weights: list[list[float]] = []
    bandit = vowpalwabbit.LabelType.CONTEXTUAL_BANDIT
    workspace = vowpalwabbit.Workspace("--cb 2 --quiet")
    for i, (line, decision) in enumerate(zip(lines, made, strict=True)):
        example = workspace.parse(line, bandit)
        [label] = example.get_label(bandit).costs
        found = (label.action, label.cost, label.probability)
        told = (
            1 + "ab".index(decision["arm"]),
            1e-7 if i == 4 else -i / 16,
            decision["probabilities"][decision["arm"]],
        )
        assert found == pytest.approx(told, rel=1e-6)  # it counts in single precision
        weights.append([example.feature_weight(" ", j) for j in range(example.num_features_in(" "))])
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    for i, found in enumerate(weights):
        assert found == pytest.approx([0.5, i / 8] if i else [0.5], rel=1e-6)


def checked(path: Path) -> "subprocess.CompletedProcess[str]":
    """The package's own checks, by a Python that has it."""
    script = Path(__file__).parent / "lifejacket_checks.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([LIFEJACKET, str(script), str(path)], capture_output=True, text=True, env=environment)


needs_lifejacket = pytest.mark.needs("lifejacket")


@needs_lifejacket
@pytest.mark.parametrize(("study", "fill", "rows"), [("trial", None, 24), ("together", 0.0, 36)])
def test_lifejacket_takes_it(url: str, tmp_path: Path, study: str, fill: float | None, rows: int) -> None:
    exported(url, study, "lifejacket", tmp_path / "a.csv", fill)
    done = checked(tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"passed {rows}"


@needs_lifejacket
def test_lifejacket_does_not_take_everything(url: str, tmp_path: Path) -> None:
    exported(url, "trial", "lifejacket", tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:3] + lines[4:]))
    assert "Not all subjects have all calendar times" in checked(tmp_path / "a.csv").stderr


def test_the_frame_says_who_was_in_the_study_and_which_policy_decided(url: str, tmp_path: Path) -> None:
    exported(url, "together", "lifejacket", tmp_path / "a.csv", 0.0)
    frame = pd.read_csv(tmp_path / "a.csv")
    assert frame.groupby("user_id").calendar_t.apply(list).tolist() == [list(range(9))] * 4
    assert frame[frame.in_study == 1].groupby("user_id").size().to_dict() == {"a": 5, "b": 4, "c": 9, "d": 2}
    assert frame[frame.in_study == 0].reward.isna().all()
    away = frame[frame.available == 0]
    assert (away.action.tolist(), away.action1prob.tolist(), away.reward.tolist()) == ([0.0], [0.0], [0.0])
    assert sorted(frame[frame.in_study == 1].policy_num.unique()) == [0, 1]


def study_of(host: records.Host, what: str) -> None:
    host.study("s", records.UCB, seed=1, arms=("a", "b", "c") if what == "arms" else ("a", "b"))
    if what == "source":
        host.reward(host.ingest("s", "u", "a", probabilities={"a": 0.5, "b": 0.5}), 1.0)
    elif what == "probability":
        host.reward(host.ingest("s", "u", "a"), 1.0)
    else:
        made = host.decision("s", "u")
        if what == "played":
            host.reward(made["id"], 1.0, arm="b" if made["arm"] == "a" else "a")


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
def test_what_lifejacket_would_not_take_is_refused(tmp_path: Path, what: str, message: str) -> None:
    host = records.Host(f"sqlite:///{tmp_path / 's.db'}")
    study_of(host, what)
    host.close()
    with pytest.raises(InvalidValue, match=message):
        exported(host.url, "s", "lifejacket", tmp_path / "out" / "a.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["csv", "vw"])
def test_an_analyst_may_export_over_http_and_a_host_may_not(url: str, tmp_path: Path, kind: str) -> None:
    exported(url, "alone", kind, tmp_path / "a")
    database = Database(url, write=True)
    roles = {role: Auth(database).create("alone", role) for role in ("analyst", "host")}
    with TestClient(make_app(database)) as client:

        def get(role: str, study: str, **words: Any) -> Any:
            head = {"authorization": f"Bearer {roles[role]}"}
            return client.get(f"/v1/studies/{study}/export", params=words, headers=head)

        found = get("analyst", "alone", format=kind)
        assert (found.status_code, found.text) == (200, (tmp_path / "a").read_text())
        assert found.headers["content-type"].startswith("text/csv" if kind == "csv" else "text/plain")
        assert get("host", "alone").status_code == 403
        assert get("analyst", "trial").status_code == 403
        assert get("analyst", "alone", format="parquet").status_code == 422
    database.close()


def test_the_command_line(url: str, tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return typer.testing.CliRunner().invoke(app, ["export", url, *words, "--out", str(tmp_path / "a.txt")])

    done = run("--study", "alone", "--format", "vw")
    assert done.exit_code == 0, done.output
    assert "left out: 1, no arm was available" in done.stdout
    assert run("--study", "none").exit_code == 2
    assert run("--study", "alone", "--format", "xls").exit_code == 2
    assert [path for path in tmp_path.iterdir() if path.name != "a.txt"] == []
