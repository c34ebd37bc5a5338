"""Nothing that a user of the service can see predicts a decision: the attack, and the secret that prevents it."""

import contextlib
import json
import logging
import secrets
import struct
from base64 import b64encode
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from larl.service.core import streams
from larl.service.core.handlers import studies
from larl.service.core.policy_timeout import CircuitOpen
from larl.service.core.problems import Problem
from larl.service.core.streams import KeyedStreams
from larl.service.core.study_config import StudyConfig
from larl.service.ops.backup import backup, restore
from larl.service.storage.tables import journal
from tests.service.fixed_secrets import fixed_secret
from tests.service.host import LARL, UCB, Host, decision_command, hosts
from tests.service.splitmix_attack import recover_seed
from tests.service.test_auth import ROUTES
from tests.service.test_replay import mismatch
from tests.service.token_service import STUDY, TokenService

UNITS, SEED = 200, 2**61 + 7
SECRET = bytes(range(100, 132))
RANDOM = {"policy": "Random"}
SETTINGS: dict[str, dict[str, Any]] = {  # by what draws the arm; each of two arms has probability 0.5
    "policy": {"policy": RANDOM},
    "exploration": {"policy": UCB, "min_probability": 0.5},
    "fallback": {"policy": UCB},
}


def first_decisions(host: Host, study: str = "sleep") -> list[Any]:
    """Return the first decision of each unit, by its number."""
    commands = [decision_command(f"u{number}", f"k{number}", study) for number in range(UNITS)]
    return [json.loads(reply) for reply in host.batch.execute(commands) if isinstance(reply, bytes)]


def guess(seed: int, drawn_by: str) -> list[tuple[str, str]]:
    """Return id and arm of each unit's first decision as a simulation with this seed has them."""
    config = StudyConfig.create({"study": "sleep", "arms": ["a", "b"], "seed": seed} | SETTINGS[drawn_by])

    def arm(number: int) -> Any:
        return config.draw_fallback(number, 0, None)[0] if drawn_by == "fallback" else agent(number).decide().arm

    agent: Any = config.new_agent
    return [(config.decision_id(number, 0), arm(number)) for number in range(UNITS)]


@pytest.mark.parametrize("drawn_by", SETTINGS)
@pytest.mark.parametrize("version", [1, 2])
def test_attack_predicts_decisions_of_id_version_1_only(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, version: int, drawn_by: str
) -> None:
    if version == 1:
        monkeypatch.setattr(studies, "secret_to_ref", lambda _: None)  # earlier versions wrote no secret
    with hosts(sqlite) as [host], contextlib.ExitStack() as stack:
        if drawn_by == "fallback":
            stack.enter_context(host.batch.runner.without_policy(CircuitOpen("it failed")))
        host.create_study(seed=SEED, **SETTINGS[drawn_by])
        decisions = first_decisions(host)
        assert [each["source"] for each in decisions] == ["fallback" if drawn_by == "fallback" else "policy"] * UNITS
        recovered = recover_seed(decisions[0]["id"])
        assert (recovered == SEED) == (version == 1)
        for seed in {recovered % 2**62, SEED}:  # an admin sees the seed
            guessed = guess(seed, drawn_by)
            ids = sum(each["id"] == name for each, (name, _) in zip(decisions, guessed, strict=True))
            arms = sum(each["arm"] == arm for each, (_, arm) in zip(decisions, guessed, strict=True))
            if version == 1:
                assert (ids, arms) == (UNITS, UNITS)
                host.reward(guessed[1][0], "forged", 1.0)
            else:
                assert ids == 0
                assert abs(arms - UNITS / 2) < 4 * (UNITS / 4) ** 0.5  # standard errors
                with pytest.raises(Problem, match="there is no such decision"):
                    host.reward(guessed[1][0], "forged", 1.0)


def test_refusal_of_a_guessed_id_does_not_say_whether_the_step_exists(service: TokenService) -> None:
    service.request(service.admin, "POST", "/v1/studies", json=STUDY)
    token = service.tokens["host", "sleep"]
    for key in ("1", "2"):
        service.request(token, "POST", "/v1/studies/sleep/decisions", json={"unit": "u", "key": key})
    bodies = set()
    for place in ("0-0", "0-1", "0-2", "1-0"):  # two steps that exist, the next one, another unit
        name = f"sleep.{place}-0123456789abcdef"
        for what, body in (("reward", {"key": "3", "value": 1.0}), ("delivered", {"key": "3"})):
            response = service.request(token, "POST", f"/v1/decisions/{name}/{what}", json=body)
            assert response.status_code == 404
            bodies.add(response.text.replace(name, "ID"))
    assert len(bodies) == 1


def shows_secret(text: str) -> bool:
    """Return whether 8 bytes of the secret in a row are in a text, as hex or base64."""
    parts = [SECRET[i : i + 8] for i in range(len(SECRET) - 7)]
    as_base64 = [b64encode(SECRET[i:])[:10].decode() for i in range(len(SECRET) - 7)]
    return any(part in text.lower() for part in map(bytes.hex, parts)) or any(part in text for part in as_base64)


def test_secret_is_in_no_response_and_no_log(service: TokenService, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "larl")
    texts = []

    def request(token: str | None, method: str, path: str, body: Any = None) -> Any:
        response = service.request(token, method, path, json=body)
        texts.append(f"{response.headers} {response.text}")
        return response

    with fixed_secret(SECRET):
        created = request(service.admin, "POST", "/v1/studies", STUDY)
    assert request(service.admin, "POST", "/v1/studies", STUDY).content == created.content
    assert request(service.admin, "POST", "/v1/studies", STUDY | {"seed": 2}).status_code == 409
    decided = request(service.admin, "POST", "/v1/studies/sleep/decisions", {"unit": "u", "key": "1"})
    for token in (None, *service.tokens.values()):
        for (method, route), (_, body) in ROUTES.items():
            if not route.endswith("/close"):
                path = route.format(study="sleep", unit="u", issue=1, decision=decided.json()["id"])
                request(token, method, path, body)
        for path in ("/", "/openapi.json", "/v1/health", "/v1/studies", "/v1/studies/sleep/export?format=vw"):
            request(token, "GET", path)
    assert not any(map(shows_secret, [*texts, caplog.text]))
    assert shows_secret(f"2:{SECRET.hex()}")


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_secret_is_in_the_journal_and_not_in_settings_and_snapshots(sqlite: str, pooling: str) -> None:
    with hosts(sqlite) as [host], fixed_secret(SECRET):
        host.create_study(policy=LARL, pooling=pooling)
        host.decide("u", "1")
        [event] = host.journal.select(journal.c.kind == "study")
        assert event.ref == f"2:{SECRET.hex()}"
        config = host.queries.state("sleep").config
        assert config.secret == SECRET
        shown = [repr(config), repr(vars(host.queries.state("sleep").info())), json.dumps(config.to_dict())]
        shown += [event.request_json, event.response_json, json.dumps(config.new_agent(0).pack())]
        assert not any(map(shows_secret, shown))


def test_studies_with_the_same_seed_decide_independently(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "token_bytes", secrets.token_bytes)
    with hosts(sqlite) as [host]:
        first, second = ([], [])  # type: ignore[var-annotated]
        for study, decisions in (("one", first), ("two", second)):
            host.create_study(study, policy=RANDOM, seed=SEED)
            decisions += first_decisions(host, study)
        suffixes = {each["id"].rsplit("-")[-1] for each in [*first, *second]}
        assert len(suffixes) == 2 * UNITS
        assert [each["arm"] for each in first] != [each["arm"] for each in second]  # equal by chance: 2⁻²⁰⁰


@pytest.mark.parametrize("pooling", ["none", "full"])
def test_decisions_are_those_of_an_agent_with_the_streams_of_the_study(storage: str, pooling: str) -> None:
    reference: Any = None
    for part in range(2):  # the second part begins with agents from snapshots
        with hosts(storage, 1 if storage.startswith("sqlite") else 2) as opened:
            if part == 0:
                opened[0].create_study(policy=LARL, pooling=pooling, min_probability=0.3)
                config = opened[-1].queries.state("sleep").config
                reference = [config.new_agent(number) for number in range(2)]
            for i in range(part * 12, part * 12 + 12):
                host, number = opened[i % len(opened)], i // 3 % 2
                decision = host.decide(f"u{number}", f"k{i}")
                agent = reference[0 if pooling == "full" else number]
                expected = agent.decide(f"u{number}") if pooling == "full" else agent.decide()
                prefix = "sleep." if pooling == "full" else f"sleep.{number}-"
                assert (decision["id"], decision["arm"]) == (prefix + expected.id, expected.arm)
                assert decision["probabilities"] == expected.probabilities
                host.reward(decision["id"], f"k{i}", float(i % 5))
                agent.observe(expected.id, float(i % 5))
            assert opened[0].replay() == part * 12 + 12


def test_restored_study_continues_with_the_same_ids(sqlite: str, tmp_path: Path) -> None:
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    with hosts(sqlite) as [host], fixed_secret(SECRET):
        host.create_study(policy=RANDOM)
        host.decide("u", "1")
        backup(host.database, tmp_path / "study.gz")
        later = [host.decide(unit, f"{unit}-{i}") for i in range(8) for unit in ("u", "v")]
    restore(tmp_path / "study.gz", copy)
    with hosts(copy) as [host]:
        again = [host.decide(unit, f"{unit}-{i}") for i in range(8) for unit in ("u", "v")]
    assert [(each["id"], each["arm"]) for each in again] == [(each["id"], each["arm"]) for each in later]


@pytest.mark.parametrize(
    ("ref", "row"),
    [(f"'2:{SECRET.hex()[:-2]}'", 1), (f"'3:{SECRET.hex()}'", 1), (f"'2:{bytes(32).hex()}'", 3), ("NULL", 3)],
    ids=["truncated", "of a later version", "another", "none"],
)
def test_replay_finds_a_changed_secret_and_does_not_show_it(tmp_path: Path, ref: str, row: int) -> None:
    path = tmp_path / "study.db"
    with hosts(f"sqlite:///{path}") as [host], fixed_secret(SECRET):
        host.create_study()
        host.decide("u", "1")
    found = mismatch(path, f"UPDATE journal SET ref = {ref} WHERE kind = 'study'")
    assert found.seq == row  # of the study, or of its first decision
    assert not shows_secret(str(found))


def test_random_bits_differ_by_purpose_unit_step_seed_and_secret() -> None:
    bits = set()
    for study in (KeyedStreams(SECRET, 1), KeyedStreams(SECRET, 2), KeyedStreams(bytes(32), 1)):
        for number in range(10):
            for t in range(10):
                unit = study(number)
                bits |= {*map(int, unit.keys(t)), int(unit.id_suffix(t), 16), study.fallback(number, t)}
    assert len(bits) == 3 * 10 * 10 * 4


def test_random_bits_are_those_of_one_digest_so_that_stored_studies_replay() -> None:
    digest = blake2b(struct.pack("<QQQ", 7, 3, 5), key=SECRET, person=b"larl streams", digest_size=32).digest()
    policy, exploration, _, fallback = struct.unpack("<QQQQ", digest)
    study = KeyedStreams(SECRET, 7)
    assert study(3).keys(5) == (policy, exploration)
    assert (study(3).id_suffix(5), study.fallback(3, 5)) == (digest[16:24].hex(), fallback)
