"""What a study comes to, counted row by row, is what its decisions say when they are read one by one."""

import threading
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import larl
from larl.service.core import batch
from larl.service.queries import overview
from larl.service.queries.model_weights import model_weights
from larl.service.queries.series import BUCKETS, MAX_ARMS, Series
from larl.service.queries.statistics import STATES
from tests.service.studying import ARMS, client, decide, done, live, make_study, reward

AUTO = larl.Auto(orders=(1, 3), particles=32)


def everything(someone: Any, study: str = "sleep") -> list[dict[str, Any]]:
    found = someone.get(f"/v1/studies/{study}/decisions", params={"limit": 1000}).json()
    assert found["next"] is None
    return list(found["items"])


def mean(values: Any) -> Any:
    """Of those that are known, to six digits; None if none is."""
    known = [value for value in values if value is not None]
    return pytest.approx(fmean(known), rel=1e-5) if known else None


@pytest.mark.parametrize("seed", range(3))
def test_a_study_is_counted_as_its_decisions_are(tmp_path: Path, seed: int) -> None:
    with client(tmp_path) as someone:
        make_study(someone, default_reward=0.25 if seed else None)
        for _ in range(3):  # counted in between, not only in the end
            live(someone, 60, seed)
            found = done(someone.get("/v1/studies/sleep/overview"))
            said = everything(someone)
            assert found["decisions"] == len(said)
            assert found["units"] == len({each["unit"] for each in said})
            assert found["states"] == {state: Counter(each["state"] for each in said)[state] for state in STATES}
            assert found["sources"] == {
                source: sum(each["source"] == source for each in said) for source in found["sources"]
            }
            assert found["explored"] == sum(each["explored"] for each in said)
            assert found["reward"] == mean(each["reward"] for each in said)
        assert min(found["states"][state] for state in ("observed", "corrected", "late", "pending", "unavailable")) > 0


def test_series_over_steps_are_means_over_units(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        live(someone, 150)
        steps, said = done(someone.get("/v1/studies/sleep/overview"))["steps"], everything(someone)
        assert steps["width"] == 1
        for t in steps["start"]:
            here = [each for each in said if each["t"] == t]
            armed = [each for each in here if each["arm"]]
            told = [each for each in armed if each["probabilities"]]
            assert steps["decisions"][t] == len(here)
            assert steps["reward"][t] == mean(each["reward"] for each in here)
            assert steps["expected"][t] == mean(each["expected"] for each in here)
            for number, arm in enumerate(ARMS):
                share = mean(float(each["arm"] == arm) for each in armed)
                assert steps["shares"][number][t] == share
                odds = mean(each["probabilities"][arm] for each in told)
                assert steps["probabilities"][number][t] == odds


def test_days_are_those_of_the_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        days = ["2026-02-27", "2026-02-28", "2026-02-28", "2026-03-02"]
        for i, when in enumerate(days):
            monkeypatch.setattr(batch, "now", lambda when=when: f"{when}T23:59:59.000000Z")
            name = decide(someone, str(i), "u")["id"]
        monkeypatch.setattr(batch, "now", lambda: "2026-03-05T00:00:00.000000Z")
        reward(someone, "late", name, 4.0)  # counts for the day of its decision
        found = done(someone.get("/v1/studies/sleep/overview"))["days"]
        assert found["start"] == ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]
        assert found["decisions"] == [1, 2, 0, 1]
        assert found["reward"] == [None, None, None, 4.0]
        assert found["shares"][0][2] is None


def test_many_buckets_become_wide_ones() -> None:
    series, luck = Series(2), np.random.default_rng(0)
    values = luck.normal(size=5 * BUCKETS)
    for place, value in enumerate(values):
        series.add_decision(place, place % 2, [0.5, 0.5], None)
        series.change_reward(place, None, 1.0)
        series.change_reward(place, 1.0, value)
    found = series.to_dict([0, 1])
    assert found["width"] == 8
    assert found["decisions"] == [8] * 125
    assert found["reward"] == pytest.approx(values.reshape(125, 8).mean(axis=1).tolist(), rel=1e-5, abs=1e-5)
    assert found["shares"][0] == [0.5] * 125


def test_of_many_arms_the_rare_ones_are_shown_together(tmp_path: Path) -> None:
    arms = [f"arm {i}" for i in range(40)]
    with client(tmp_path) as someone:
        make_study(someone, arms=arms, min_probability=0.0)
        for i in range(30):
            decide(someone, str(i), "u", available=[arms[7]] if i % 2 else [arms[i]])
        found = done(someone.get("/v1/studies/sleep/overview"))
        assert found["arms"][0] == "arm 7"
        assert len(found["arms"]) == MAX_ARMS - 1
        assert found["other_arms"] == 40 - len(found["arms"])
        assert sum(column[0] for column in found["days"]["shares"]) == pytest.approx(1.0, rel=1e-4)
        assert sum(column[0] for column in found["days"]["probabilities"]) == pytest.approx(1.0, rel=1e-4)


def test_what_is_known_is_not_sent_again(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        make_study(someone, "other")
        decide(someone, "a", "u")
        for path in ("/v1/studies/sleep/overview", "/v1/studies/sleep/units/u/overview"):
            seq = done(someone.get(path))["seq"]
            decide(someone, path[-20:].replace("/", "-"), "u", "other")  # nothing that happened here
            assert someone.get(path, params={"after": seq}).status_code == 204
            decide(someone, f"b{seq}", "u")
            assert done(someone.get(path, params={"after": seq}))["seq"] > seq


def test_a_long_journal_is_read_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 50)
    monkeypatch.setattr(overview, "READ_LIMIT", 0.0)
    with client(tmp_path) as someone:
        make_study(someone)
        for i in range(120):
            decide(someone, str(i), "u", available=[], reason="asleep")
        assert someone.get("/v1/studies/sleep/overview", params={"after": 10**6}).json()["behind"] == 72
        looks = [done(someone.get("/v1/studies/sleep/overview")) for _ in range(2)]
        assert [(look["behind"], look["decisions"]) for look in looks] == [(22, 98), (0, 120)]


@pytest.mark.timing
def test_many_may_look_while_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 10)
    with client(tmp_path) as someone:
        make_study(someone)
        live(someone, 80)
        overviews = overview.Overviews(someone.app.state.service.queries)
        seen: list[Any] = []
        threads = [threading.Thread(target=lambda: seen.append(overviews.study("sleep"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        overviews.close()
        assert seen == [seen[0]] * 8
        assert seen[0]["decisions"] == 80


def test_the_roster_has_every_unit_once(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        live(someone, 60, units=7)
        found, after = [], 0
        while after is not None:
            page = done(someone.get("/v1/studies/sleep/roster", params={"after": after, "limit": 3}))
            found += page["items"]
            after = page["next"]
        said = everything(someone)
        assert [each["number"] for each in found] == list(range(len(found)))
        for each in found:
            own = [one for one in said if one["unit"] == each["unit"]]
            assert each["decisions"] == len(own)
            assert each["last"] == own[-1]["at"]
            assert each["reward"] == mean(one["reward"] for one in own)
            assert each["states"]["late"] == sum(one["state"] == "late" for one in own)


def test_issues_are_open_until_they_are_resolved(tmp_path: Path) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        service = someone.app.state.service
        with service.queries.journal.transaction() as tx:
            for severity, code in (("yellow", "clock"), ("red", "policy"), ("green", "note")):
                words = (severity, code, "", f"{code} happened", "nothing", "2026-01-01T00:00:00.000000Z")
                service.commands.batch.issues.record(tx, "sleep", *words)
        found = done(someone.get("/v1/studies/sleep/overview"))
        assert found["issues"] == {"red": 1, "yellow": 1, "green": 1}
        assert [each["severity"] for each in found["open"]] == ["red", "yellow", "green"]
        number = found["open"][0]["issue"]
        done(someone.post(f"/v1/studies/sleep/issues/{number}/resolved", json={"note": "mended"}))
        found = done(someone.get("/v1/studies/sleep/overview"))
        assert found["issues"] == {"red": 0, "yellow": 1, "green": 1}
        assert number not in [each["issue"] for each in found["open"]]


def test_a_unit_shows_its_last_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MAX_STEPS", 20)
    with client(tmp_path) as someone:
        make_study(someone)
        live(someone, 90, units=2)
        found = done(someone.get("/v1/studies/sleep/units/unit-0/overview"))
        own = [each for each in everything(someone) if each["unit"] == "unit-0"]
        assert found["steps"] == own[-20:]
        assert found["decisions"] == len(own)
        assert found["arms"] == ARMS
        assert found["has_weights"] is False
        assert found["weights"] is None


@pytest.mark.parametrize("path", ["nobody/overview", "sleep/units/nobody/overview", "nobody/roster"])
def test_what_there_is_not(tmp_path: Path, path: str) -> None:
    with client(tmp_path) as someone:
        make_study(someone)
        assert someone.get(f"/v1/studies/{path}").status_code == 404


def test_a_host_may_not_look(tmp_path: Path) -> None:
    with client(tmp_path, role="host") as someone:
        for path in ("overview", "roster", "units/u/overview"):
            assert someone.get(f"/v1/studies/sleep/{path}").status_code == 403


@pytest.mark.parametrize("spec", [AUTO, larl.AdaptiveLARL(2), larl.LARLBIC(20, s_max=4)], ids=str)
def test_evidence_is_the_weight_of_each_world(spec: larl.policies.Policy) -> None:
    agent, luck, world = larl.Agent(spec, 2, seed=3), np.random.default_rng(1), 0.0
    for _ in range(60):
        world = 0.95 * world + 0.3 * luck.normal()
        arm = int(luck.integers(2))
        agent.observe(agent.record(agent.arms[arm]), (1 - 2 * arm) * world + 0.1 * luck.normal())
    found = model_weights(spec, agent.state)
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(weight >= 0.0 for weight in found.values())
    still = found.get("constant arms", 0.0) + found.get("s = 0", 0.0)
    assert still < 0.05  # these rewards do not stand still


def test_before_anything_is_learnt_evidence_is_what_is_believed_a_priori() -> None:
    labels = list(
        model_weights(larl.Auto(orders=(1, 3), particles=32), larl.Auto(orders=(1, 3), particles=32).init(2)) or ()
    )
    assert labels == ["constant arms", "independent AR(1) arms", "rotating state", "order 1", "order 3"]
    assert list(model_weights(larl.AdaptiveLARL(2), larl.AdaptiveLARL(2).init(2)) or ()) == ["s = 0", "s = 1", "s = 2"]
    assert model_weights(larl.LARLBIC(20, s_max=4), larl.LARLBIC(20, s_max=4).init(2)) is None
    assert model_weights(larl.UCB(), larl.UCB().init(2)) is None


@pytest.mark.parametrize("spec", [larl.LARLBIC(5, s_max=3)], ids=str)
def test_evidence_is_that_of_the_mind_that_decides(tmp_path: Path, spec: larl.policies.Policy) -> None:
    with client(tmp_path) as someone:
        make_study(someone, policy=spec.to_dict(), max_delay=4)
        agents = someone.app.state.service.commands.batch.studies.agents
        for i in range(12):
            found = decide(someone, f"k{i}", "u")
            reward(someone, f"k{i}", found["id"], float(i % 3))
            seen = done(someone.get("/v1/studies/sleep/units/u/overview"))
            handle = agents._handles["sleep", "u"]
            assert seen["has_weights"] is True
            assert seen["weights"] == model_weights(spec, handle.agent.state)
        assert seen["weights"] is not None
