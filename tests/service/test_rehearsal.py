"""A dress rehearsal at a real service: it passes where the service is right, and tells where it is not."""

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
from tests.service.running import LARL, running
from tests.waiting import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "src" / "larl" / "examples" / "rehearsal.toml"
FINE = """
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
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service that asks for tokens, and one of them."""
    folder = tmp_path_factory.mktemp("served")
    database = Database(f"sqlite:///{folder / 'study.db'}", create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    with running(folder) as address:
        yield address, token


@pytest.fixture
def client(place: tuple[str, str]) -> Iterator[Client]:
    with Client(*place) as found:
        yield found


def plan(folder: Path, text: str = FINE, **more: Any) -> Plan:
    path = folder / "rehearsal.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path, f"s{uuid4().hex[:12]}", **more)


def run(folder: Path, place: tuple[str, str], *options: str) -> Any:
    (folder / "rehearsal.toml").write_text(FINE, encoding="utf-8")
    address, token = place
    words = ["rehearse", str(folder / "rehearsal.toml"), "--url", address, "--out", str(folder / "out"), *options]
    return CliRunner().invoke(app, words, env={"LARL_TOKEN": token})


def test_the_example_shows_every_key() -> None:
    found = read_plan(EXAMPLE)
    assert (found.units, found.steps, found.seed, found.clients) == (70, 140, 0, 8)
    assert found.world == larl.LatentAR([0.9], [-1, 1], [0, 0])
    text = EXAMPLE.read_text(encoding="utf-8")
    for name in (*vars(found.traffic), *found.config.to_dict()):
        assert re.search(rf"^(# )?{name} = ", text, re.M) or name == "version", name


def test_a_rehearsal_from_the_command_line(tmp_path: Path, place: tuple[str, str]) -> None:
    done = run(tmp_path, place, "--study", "whole")
    assert done.exit_code == 0, done.output
    assert "The service's records match exactly what was sent" in done.output
    found = json.loads((tmp_path / "out" / "rehearsal.json").read_text())
    page = (tmp_path / "out" / "rehearsal.html").read_text(encoding="utf-8")
    assert found["decisions"] == 120
    assert found["differences"] == []
    assert set(found["states"]) == {"observed", "corrected", "missing", "late", "pending", "unavailable"}
    assert set(found["statuses"]) == {"learnt", "repaired", "corrected", "repeated", "late", "filled in"}
    assert set(found["sources"]) == {"policy", "host", "unavailable"}
    assert len(found["sent"]) == 9, "every kind of traffic"
    assert len(found["refused"]) == 11, "all that is malformed"
    assert all(name.startswith("4") for name in found["refused"])
    assert found["arms"]["nothing"]["mean"] + found["arms"]["prompt"]["mean"] == pytest.approx(1.0)
    assert found["regret"]["mean"] > 0.0 < found["regret"]["se"]
    assert 0.0 < found["latency"]["decision"]["p50"] <= found["latency"]["decision"]["p99"]
    assert "Rehearsal of whole" in page
    assert "http" not in page.replace("http-equiv", ""), "it asks nothing of the network"


def test_in_a_cohort_with_defaults_and_units_that_must_register(tmp_path: Path, client: Client) -> None:
    text = FINE.replace(
        "max_delay = 4", 'max_delay = 4\npooling = "full"\ndefault_reward = 0.5\nregistration = "explicit"'
    )
    found = rehearse(plan(tmp_path, text), client, requires_token=True)
    assert found.differences == []
    assert found.states["defaulted"] > 0


def test_one_seed_is_one_rehearsal(tmp_path: Path, client: Client) -> None:
    def figures(**more: Any) -> dict[str, Any]:
        found = rehearse(plan(tmp_path, **more), client, requires_token=True).to_dict()
        return {name: value for name, value in found.items() if name not in ("study", "seconds", "latency")}

    first = figures()
    assert figures() == first
    assert figures(seed=1)["sent"] != first["sent"]


class Meddling(Client):
    """While the rehearsal looks at the records, somebody else has used the study."""

    def decisions(self, study: str, unit: str | None = None) -> Iterator[DecisionRecord]:
        found = list(super().decisions(study, unit))
        if found:
            observed = next(each for each in reversed(found) if each.state == "observed")
            self.observe(observed.id, 77.0)
            self.decide(study, "stranger")
        return super().decisions(study, unit)


def test_what_was_not_sent_is_found(tmp_path: Path, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larl.client.Client", Meddling)
    done = run(tmp_path, place, "--study", "meddled")
    assert done.exit_code == 3
    assert re.search(r"error: 4 differences .* The first: unit-\d+: the reward of decision meddled\.", done.output)
    found = json.loads((tmp_path / "out" / "rehearsal.json").read_text())["differences"]
    assert "is corrected; expected: observed" in found[0]
    assert "stranger: an unknown unit" in found


class Closing(Client):
    """A study is closed by somebody else as soon as it is made."""

    def create_study(self, study: str, *words: Any, **terms: Any) -> StudyInfo:
        made = super().create_study(study, *words, **terms)
        self.close_study(study, "enough")
        return made


def test_a_request_that_should_be_accepted_and_is_not_is_a_difference(tmp_path: Path, place: tuple[str, str]) -> None:
    with Closing(*place) as client:
        found = rehearse(plan(tmp_path, steps=3), client)
    assert len(found.differences) == 6
    assert "was refused (409: " in found.differences[0]
    assert "closed" in found.differences[0]


def test_a_study_in_use_is_left_alone(tmp_path: Path, place: tuple[str, str], client: Client) -> None:
    client.create_study("used", ["nothing", "prompt"], {"policy": "UCB"}, seed=0, min_probability=0.1, max_delay=4)
    client.decide("used", "somebody")
    done = run(tmp_path, place, "--study", "used")
    assert done.exit_code == 2
    assert "study = 'used' is not usable; accepted: a study of its own" in done.output
    assert len(list(client.decisions("used"))) == 1


def test_mistakes_are_one_line(tmp_path: Path, place: tuple[str, str]) -> None:
    by = "an admin's token of this service, by --token or LARL_TOKEN"
    wrong = run(tmp_path, place, "--token", "larl_wrong")
    assert (wrong.exit_code, wrong.output) == (2, f"error: {place[0]}: the token is not accepted; accepted: {by}\n")
    (tmp_path / "rehearsal.toml").write_text(FINE, encoding="utf-8")
    words = ["rehearse", str(tmp_path / "rehearsal.toml"), "--url", place[0], "--out", str(tmp_path / "new")]
    without = CliRunner(env={"LARL_TOKEN": None}).invoke(app, words)
    assert (without.exit_code, without.output) == (2, f"error: {place[0]}: a token is required; accepted: {by}\n")
    assert not (tmp_path / "new").exists()
    taken = run(tmp_path, (place[0] + "/nowhere", place[1]))
    assert taken.exit_code == 2
    assert taken.output.startswith(f"error: {place[0]}/nowhere: there is no such address: /nowhere/v1/studies;")
    assert taken.output.count("\n") == 1


@pytest.mark.timing
def test_stopped_it_stops(tmp_path: Path, place: tuple[str, str]) -> None:
    (tmp_path / "rehearsal.toml").write_text(FINE, encoding="utf-8")
    words = [
        "rehearse",
        "rehearsal.toml",
        "--url",
        place[0],
        "--token",
        place[1],
        "--steps",
        "100000",
        "--study",
        "long",
    ]
    process = subprocess.Popen(
        [*LARL, *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )
    assert process.stderr is not None
    assert "%" in process.stderr.readline(), "progress"
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not (tmp_path / "results" / "rehearsal").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("units = 6", "units = 0", r":2: units = 0 .*a whole number from 1"),
        ("units = 6", "unit = 6", r":2: unit = 6 .*only the keys study, world"),
        ("steps = 20\n", "", r"steps = None"),
        ("lost = 0.1", "lost = 1.5", r":14: traffic: .*lost = 1.5 .*≤ 1"),
        ("lost = 0.1", "lost = 0.8", r"late = 0.3 .*at most 0.2"),
        ("lost = 0.1", "lose = 0.1", r":14: traffic: lose = 0.1 .*only the fields lost, late"),
        ("paper = 1", "paper = 2", r":12: world: .*1, 5 or 10"),
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
def test_a_file_is_checked_before_anything_starts(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "rehearsal.toml"
    assert old in FINE
    path.write_text(FINE.replace(old, new), encoding="utf-8")
    with pytest.raises(larl.InvalidValue, match=said):
        read_plan(path)
