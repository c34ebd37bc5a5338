"""Rehearsals with a service that runs as a process: they pass if its records are right, and report differences."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

import larl
from larl.cli import app
from larl.client import Client, DecisionRecord, StudyInfo
from larl.rehearsal.plan import Plan, read_plan
from larl.rehearsal.run import rehearse
from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.service.processes import LARL
from tests.service.service_process import serving_folder
from tests.waiting import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "src" / "larl" / "examples" / "rehearsal.toml"
VALID = """
units = 6
steps = 20
clients = 3
[study]
study = "trial"
arms = ["nothing", "prompt"]
policy = { policy = "UCB" }
min_probability = 0.1
max_delay = 4
[world]
paper = 1
[traffic]
lost = 0.1
late = 0.3
latest = 8
duplicate = 0.2
again = 0.2
corrected = 0.2
unavailable = 0.1
host = 0.1
unanswered = 0.2
malformed = 0.2
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service, and the token of an admin."""
    folder = tmp_path_factory.mktemp("served")
    database = Database(f"sqlite:///{folder / 'study.db'}", create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    with serving_folder(folder) as address:
        yield address, token


@pytest.fixture
def client(service: tuple[str, str]) -> Iterator[Client]:
    with Client(*service) as found:
        yield found


def plan(folder: Path, text: str = VALID, **more: Any) -> Plan:
    path = folder / "rehearsal.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path, f"s{uuid4().hex[:12]}", **more)


def run(folder: Path, service: tuple[str, str], *options: str) -> Any:
    (folder / "rehearsal.toml").write_text(VALID, encoding="utf-8")
    address, token = service
    arguments = ["rehearse", str(folder / "rehearsal.toml"), "--url", address, "--out", str(folder / "out"), *options]
    return CliRunner().invoke(app, arguments, env={"LARL_TOKEN": token})


def test_example_has_every_key() -> None:
    found = read_plan(EXAMPLE)
    assert (found.units, found.steps, found.seed, found.clients) == (70, 140, 0, 8)
    assert found.world == larl.LatentAR([0.9], [-1, 1], [0, 0])
    text = EXAMPLE.read_text(encoding="utf-8")
    for name in (*vars(found.traffic), *found.config.to_dict()):
        assert re.search(rf"^(# )?{name} = ", text, re.M) or name == "version", name


def test_rehearsal_command(tmp_path: Path, service: tuple[str, str]) -> None:
    done = run(tmp_path, service, "--study", "complete")
    assert done.exit_code == 0, done.output
    assert "The service's records match exactly what was sent" in done.output
    found = json.loads((tmp_path / "out" / "rehearsal.json").read_text())
    page = (tmp_path / "out" / "rehearsal.html").read_text(encoding="utf-8")
    assert found["decisions"] == 120
    assert found["differences"] == []
    assert set(found["states"]) == {"observed", "corrected", "missing", "late", "pending", "unavailable"}
    assert set(found["statuses"]) == {"learnt", "repaired", "corrected", "repeated", "late", "filled in"}
    assert set(found["sources"]) == {"policy", "host", "unavailable"}
    assert len(found["sent"]) == 9, "all kinds of traffic"
    assert len(found["refused"]) == 11, "all kinds of malformed requests"
    assert all(name.startswith("4") for name in found["refused"])
    assert found["arms"]["nothing"]["mean"] + found["arms"]["prompt"]["mean"] == pytest.approx(1.0)
    assert found["regret"]["mean"] > 0.0 < found["regret"]["se"]
    assert 0.0 < found["latency"]["decision"]["p50"] <= found["latency"]["decision"]["p99"]
    assert "Rehearsal of complete" in page
    assert "http" not in page.replace("http-equiv", ""), "the page must not use the network"


def test_rehearsal_with_pooling_default_rewards_and_explicit_registration(tmp_path: Path, client: Client) -> None:
    text = VALID.replace(
        "max_delay = 4", 'max_delay = 4\npooling = "full"\ndefault_reward = 0.5\nregistration = "explicit"'
    )
    found = rehearse(plan(tmp_path, text), client, requires_token=True)
    assert found.differences == []
    assert found.states["defaulted"] > 0


def test_rehearsal_on_recorded_rewards_with_missing_cells(tmp_path: Path, client: Client) -> None:
    (tmp_path / "rewards.csv").write_text("a,b\n" + "1,0\n,0.5\n0,\n" * 10, encoding="utf-8")
    text = VALID.replace("paper = 1", 'world = "Recorded"\npath = "rewards.csv"\nwindow = 20')
    found = rehearse(plan(tmp_path, text), client, requires_token=True)
    assert found.differences == []
    assert found.to_dict()["sent"]["reward missing in the world"] > 0
    assert found.to_dict()["regret"]["mean"] >= 0.0


def test_same_seed_gives_the_same_traffic(tmp_path: Path, client: Client) -> None:
    not_determined = ("study", "seconds", "latency", "arms", "reward", "regret")  # the service draws arms with a secret

    def results(**more: Any) -> dict[str, Any]:
        found = rehearse(plan(tmp_path, **more), client, requires_token=True).to_dict()
        return {name: value for name, value in found.items() if name not in not_determined}

    first = results()
    assert results() == first
    assert results(seed=1)["sent"] != first["sent"]


class MeddlingClient(Client):
    """Changes the study before the rehearsal reads the records."""

    def decisions(self, study: str, unit: str | None = None) -> Iterator[DecisionRecord]:
        found = list(super().decisions(study, unit))
        if found:
            observed = next(each for each in reversed(found) if each.state == "observed")
            self.observe(observed.id, 77.0)
            self.decide(study, "stranger")
        return super().decisions(study, unit)


def test_changes_by_another_client_are_reported(
    tmp_path: Path, service: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larl.client.Client", MeddlingClient)
    done = run(tmp_path, service, "--study", "meddled")
    assert done.exit_code == 3
    assert re.search(r"error: 4 differences .* The first: unit-\d+: the reward of decision meddled\.", done.output)
    found = json.loads((tmp_path / "out" / "rehearsal.json").read_text())["differences"]
    assert "is corrected; expected: observed" in found[0]
    assert "stranger: an unknown unit" in found


class ClosingClient(Client):
    """Closes a study as soon as it is created."""

    def create_study(self, study: str, *arguments: Any, **settings: Any) -> StudyInfo:
        info = super().create_study(study, *arguments, **settings)
        self.close_study(study, "done")
        return info


def test_refusal_of_a_valid_request_is_a_difference(tmp_path: Path, service: tuple[str, str]) -> None:
    with ClosingClient(*service) as client:
        found = rehearse(plan(tmp_path, steps=3), client)
    assert len(found.differences) == 6
    assert "was refused (409: " in found.differences[0]
    assert "closed" in found.differences[0]


def test_study_with_decisions_is_not_used(tmp_path: Path, service: tuple[str, str], client: Client) -> None:
    client.create_study("used", ["nothing", "prompt"], {"policy": "UCB"}, seed=0, min_probability=0.1, max_delay=4)
    client.decide("used", "unit-1")
    done = run(tmp_path, service, "--study", "used")
    assert done.exit_code == 2
    assert "study = 'used' is not usable; accepted: a study of its own" in done.output
    assert len(list(client.decisions("used"))) == 1


def test_errors_are_one_line(tmp_path: Path, service: tuple[str, str]) -> None:
    accepted = "an admin's token of this service, by --token or LARL_TOKEN"
    wrong = run(tmp_path, service, "--token", "larl_wrong")
    assert (wrong.exit_code, wrong.output) == (
        2,
        f"error: {service[0]}: the token is not accepted; accepted: {accepted}\n",
    )
    (tmp_path / "rehearsal.toml").write_text(VALID, encoding="utf-8")
    arguments = ["rehearse", str(tmp_path / "rehearsal.toml"), "--url", service[0], "--out", str(tmp_path / "new")]
    without = CliRunner(env={"LARL_TOKEN": None}).invoke(app, arguments)
    assert (without.exit_code, without.output) == (
        2,
        f"error: {service[0]}: a token is required; accepted: {accepted}\n",
    )
    assert not (tmp_path / "new").exists()
    wrong = run(tmp_path, (service[0] + "/nowhere", service[1]))
    assert wrong.exit_code == 2
    assert wrong.output.startswith(f"error: {service[0]}/nowhere: there is no such address: /nowhere/v1/studies;")
    assert wrong.output.count("\n") == 1


@pytest.mark.timing
def test_interrupted_rehearsal_writes_nothing(tmp_path: Path, service: tuple[str, str]) -> None:
    (tmp_path / "rehearsal.toml").write_text(VALID, encoding="utf-8")
    arguments = [
        "rehearse",
        "rehearsal.toml",
        "--url",
        service[0],
        "--token",
        service[1],
        "--steps",
        "100000",
        "--study",
        "long",
    ]
    process = subprocess.Popen(
        [*LARL, *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # the process that runs the tests may ignore it
    )
    assert process.stderr is not None
    assert "%" in process.stderr.readline(), "progress"
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert not (tmp_path / "results" / "rehearsal").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("units = 6", "units = 0", r":2: units = 0 .*a whole number from 1"),
        ("units = 6", "unit = 6", r":2: unit = 6 .*only the keys study, world"),
        ("steps = 20\n", "", r"steps = None"),
        ("lost = 0.1", "lost = 1.5", r":14: traffic: .*lost = 1.5 .*≤ 1"),
        ("lost = 0.1", "lost = 0.8", r"late = 0.3 .*at most 0.2"),
        ("lost = 0.1", "lose = 0.1", r":14: traffic: lose = 0.1 .*only the fields lost, late"),
        ("paper = 1", "paper = 2", r":12: world: .*1, 5 or 10"),
        (
            "paper = 1",
            'world = "Recorded"\ntable = [[0, 1], [1, 0]]\nwindow = 2',
            r":11: world: horizon = 20 .*at most 2, the window of Recorded",
        ),
        ("[world]\npaper = 1", "world = 1", r"world = None .*a table \[world\]"),
        ('"UCB"', '"UCBB"', r":8: study.*UCBB"),
        ("min_probability = 0.1", "min_probability = 0.6", r":9: study: .*min_probability = 0.6 .*≤ 0.5"),
        ("max_delay = 4", "max_delay = 0", r":10: study: max_delay = 0"),
        ("max_delay = 4", "version = 4", r":10: study: version = 4 .*only the keys study, arms"),
        ("max_delay = 4", "default_reward = 'x'", r":10: study: default_reward = 'x' .*a finite number"),
        ("max_delay = 4", "fallback = {nothing = 1}", r":10: study: fallback = .*a probability for every arm"),
        ('"nothing", "prompt"', '"a", "b", "c"', r":7: study: arms = .*2 names, one for each arm of the world"),
        ("max_delay = 4", "horizon = 0", r":10: study: horizon = 0 .*from 1"),
        ('"trial"', '"Trial!"', r":6: study: study = 'Trial!' .*a–z"),
        (
            '{ policy = "UCB" }',
            '{ policy = "LARL", s = 1, context = 2 }',
            r":8: study: policy = .*a policy without context",
        ),
    ],
)
def test_invalid_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "rehearsal.toml"
    assert old in VALID
    path.write_text(VALID.replace(old, new), encoding="utf-8")
    with pytest.raises(larl.InvalidValue, match=message):
        read_plan(path)
