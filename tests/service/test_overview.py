"""Overviews, which are counted event by event, agree with the decisions of the study."""

import threading
from collections import Counter
from dataclasses import replace
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
from tests.service.study_client import ARMS, content, create_study, decide, reward, service_client, simulate

AUTO = larl.Auto(orders=(1, 3), particles=32)


def all_decisions(client: Any, study: str = "sleep") -> list[dict[str, Any]]:
    found = client.get(f"/v1/studies/{study}/decisions", params={"limit": 1000}).json()
    assert found["next"] is None
    return list(found["items"])


def mean(values: Any) -> Any:
    """Return the mean of the known values to six digits; None if there is none."""
    known = [value for value in values if value is not None]
    return pytest.approx(fmean(known), rel=1e-5) if known else None


@pytest.mark.parametrize("seed", range(3))
def test_overview_counts_the_decisions_of_a_study(tmp_path: Path, seed: int) -> None:
    with service_client(tmp_path) as client:
        create_study(client, default_reward=0.25 if seed else None)
        for _ in range(3):  # counted in several parts
            simulate(client, 60, seed)
            found = content(client.get("/v1/studies/sleep/overview"))
            decisions = all_decisions(client)
            assert found["decisions"] == len(decisions)
            assert found["units"] == len({each["unit"] for each in decisions})
            assert found["states"] == {state: Counter(each["state"] for each in decisions)[state] for state in STATES}
            assert found["sources"] == {
                source: sum(each["source"] == source for each in decisions) for source in found["sources"]
            }
            assert found["explored"] == sum(each["explored"] for each in decisions)
            assert found["reward"] == mean(each["reward"] for each in decisions)
        assert min(found["states"][state] for state in ("observed", "corrected", "late", "pending", "unavailable")) > 0


def test_series_by_step_are_means_over_units(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        simulate(client, 150)
        steps, decisions = content(client.get("/v1/studies/sleep/overview"))["steps"], all_decisions(client)
        assert steps["width"] == 1
        for t in steps["start"]:
            here = [each for each in decisions if each["t"] == t]
            with_arm = [each for each in here if each["arm"]]
            known = [each for each in with_arm if each["probabilities"]]
            assert steps["decisions"][t] == len(here)
            assert steps["reward"][t] == mean(each["reward"] for each in here)
            assert steps["expected"][t] == mean(each["expected"] for each in here)
            for number, arm in enumerate(ARMS):
                share = mean(float(each["arm"] == arm) for each in with_arm)
                assert steps["shares"][number][t] == share
                probability = mean(each["probabilities"][arm] for each in known)
                assert steps["probabilities"][number][t] == probability


def test_rewards_count_for_the_day_of_their_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        days = ["2026-02-27", "2026-02-28", "2026-02-28", "2026-03-02"]
        for i, day in enumerate(days):
            monkeypatch.setattr(batch, "now", lambda day=day: f"{day}T23:59:59.000000Z")
            name = decide(client, str(i), "u")["id"]
        monkeypatch.setattr(batch, "now", lambda: "2026-03-05T00:00:00.000000Z")
        reward(client, "late", name, 4.0)  # on another day
        found = content(client.get("/v1/studies/sleep/overview"))["days"]
        assert found["start"] == ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]
        assert found["decisions"] == [1, 2, 0, 1]
        assert found["reward"] == [None, None, None, 4.0]
        assert found["shares"][0][2] is None


def test_buckets_become_wider_if_there_are_many() -> None:
    series, generator = Series(2), np.random.default_rng(0)
    values = generator.normal(size=5 * BUCKETS)
    for place, value in enumerate(values):
        series.add_decision(place, place % 2, [0.5, 0.5], None)
        series.change_reward(place, None, 1.0)
        series.change_reward(place, 1.0, value)
    found = series.to_dict([0, 1])
    assert found["width"] == 8
    assert found["decisions"] == [8] * 125
    assert found["reward"] == pytest.approx(values.reshape(125, 8).mean(axis=1).tolist(), rel=1e-5, abs=1e-5)
    assert found["shares"][0] == [0.5] * 125


def test_rare_arms_are_summed_if_there_are_many(tmp_path: Path) -> None:
    arms = [f"arm {i}" for i in range(40)]
    with service_client(tmp_path) as client:
        create_study(client, arms=arms, min_probability=0.0)
        for i in range(30):
            decide(client, str(i), "u", available=[arms[7]] if i % 2 else [arms[i]])
        found = content(client.get("/v1/studies/sleep/overview"))
        assert found["arms"][0] == "arm 7"
        assert len(found["arms"]) == MAX_ARMS - 1
        assert found["other_arms"] == 40 - len(found["arms"])
        assert sum(column[0] for column in found["days"]["shares"]) == pytest.approx(1.0, rel=1e-4)
        assert sum(column[0] for column in found["days"]["probabilities"]) == pytest.approx(1.0, rel=1e-4)


def test_overview_is_sent_only_after_new_events(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        create_study(client, "other")
        decide(client, "a", "u")
        for path in ("/v1/studies/sleep/overview", "/v1/studies/sleep/unit-overview?unit=u"):
            seq = content(client.get(path))["seq"]
            later = f"{path}{'&' if '?' in path else '?'}after={seq}"
            decide(client, f"a{seq}", "u", "other")  # an event of another study
            assert client.get(later).status_code == 204
            decide(client, f"b{seq}", "u")
            assert content(client.get(later))["seq"] > seq


def test_long_journal_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 50)
    monkeypatch.setattr(overview, "READ_LIMIT", 0.0)
    with service_client(tmp_path) as client:
        create_study(client)
        for i in range(120):
            decide(client, str(i), "u", available=[], reason="asleep")
        assert client.get("/v1/studies/sleep/overview", params={"after": 10**6}).json()["behind"] == 72
        overviews = [content(client.get("/v1/studies/sleep/overview")) for _ in range(2)]
        assert [(each["behind"], each["decisions"]) for each in overviews] == [(22, 98), (0, 120)]


@pytest.mark.timing
def test_simultaneous_requests_get_the_same_overview(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 10)
    with service_client(tmp_path) as client:
        create_study(client)
        simulate(client, 80)
        overviews = overview.Overviews(client.app.state.service.readers.queries)
        results: list[Any] = []
        threads = [threading.Thread(target=lambda: results.append(overviews.study("sleep"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        overviews.close()
        assert results == [results[0]] * 8
        assert results[0]["decisions"] == 80


def test_roster_has_every_unit_once(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        simulate(client, 60, units=7)
        found, after = [], 0
        while after is not None:
            page = content(client.get("/v1/studies/sleep/roster", params={"after": after, "limit": 3}))
            found += page["items"]
            after = page["next"]
        decisions = all_decisions(client)
        assert [each["number"] for each in found] == list(range(len(found)))
        for each in found:
            own = [one for one in decisions if one["unit"] == each["unit"]]
            assert each["decisions"] == len(own)
            assert each["last"] == own[-1]["at"]
            assert each["reward"] == mean(one["reward"] for one in own)
            assert each["states"]["late"] == sum(one["state"] == "late" for one in own)


def test_issue_is_open_until_it_is_resolved(tmp_path: Path) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        service = client.app.state.service
        with service.journal.transaction() as tx:
            for severity, code in (("yellow", "clock"), ("red", "policy"), ("green", "note")):
                issue = (severity, code, "", f"{code} happened", "nothing", "2026-01-01T00:00:00.000000Z")
                service.commands.batch("sleep").issues.record(tx, "sleep", *issue)
        found = content(client.get("/v1/studies/sleep/overview"))
        assert found["issues"] == {"red": 1, "yellow": 1, "green": 1}
        assert [each["severity"] for each in found["open"]] == ["red", "yellow", "green"]
        number = found["open"][0]["issue"]
        content(client.post(f"/v1/studies/sleep/issues/{number}/resolved", json={"note": "repaired"}))
        found = content(client.get("/v1/studies/sleep/overview"))
        assert found["issues"] == {"red": 0, "yellow": 1, "green": 1}
        assert number not in [each["issue"] for each in found["open"]]


def test_overview_of_a_unit_has_its_last_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MAX_STEPS", 20)
    with service_client(tmp_path) as client:
        create_study(client)
        simulate(client, 90, units=2)
        found = content(client.get("/v1/studies/sleep/unit-overview?unit=unit-0"))
        own = [each for each in all_decisions(client) if each["unit"] == "unit-0"]
        assert found["steps"] == own[-20:]
        assert found["decisions"] == len(own)
        assert found["arms"] == ARMS
        assert found["has_weights"] is False
        assert found["weights"] is None


@pytest.mark.parametrize("path", ["nobody/overview", "sleep/unit-overview?unit=nobody", "nobody/roster"])
def test_unknown_study_and_unit_are_not_found(tmp_path: Path, path: str) -> None:
    with service_client(tmp_path) as client:
        create_study(client)
        assert client.get(f"/v1/studies/{path}").status_code == 404


def test_host_cannot_read_overviews(tmp_path: Path) -> None:
    with service_client(tmp_path, role="host") as client:
        for path in ("overview", "roster", "unit-overview?unit=u"):
            assert client.get(f"/v1/studies/sleep/{path}").status_code == 403


@pytest.mark.parametrize("spec", [AUTO, larl.AdaptiveLARL(2), larl.LARLBIC(20, s_max=4)], ids=str)
def test_model_weights_sum_to_one_and_exclude_constant_arms(spec: larl.policies.Policy) -> None:
    agent, generator, state = larl.Agent(spec, 2, seed=3), np.random.default_rng(1), 0.0
    for _ in range(60):
        state = 0.95 * state + 0.3 * generator.normal()
        arm = int(generator.integers(2))
        agent.observe(agent.record(agent.arms[arm]), (1 - 2 * arm) * state + 0.1 * generator.normal())
    found = model_weights(spec, agent.state)
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(weight >= 0.0 for weight in found.values())
    constant = found.get("constant arms", 0.0) + found.get("s = 0", 0.0)
    assert constant < 0.05  # the means of these rewards change


def test_dropped_populations_of_auto_have_no_weight() -> None:
    state = AUTO.init(2)
    pops = state.smc.populations
    pops.alive[:], pops.evidence[:] = [True, False, False, True, True], [-2.0, 900.0, np.nan, -2.0, -2.0 + np.log(2.0)]
    assert list((model_weights(AUTO, state) or {}).values()) == pytest.approx([0.25, 0.0, 0.0, 0.25, 0.5])


def test_model_weights_before_the_first_reward() -> None:
    labels = list(
        model_weights(larl.Auto(orders=(1, 3), particles=32), larl.Auto(orders=(1, 3), particles=32).init(2)) or ()
    )
    assert labels == ["constant arms", "independent AR(1) arms", "rotating state", "order 1", "order 3"]
    assert list(model_weights(larl.AdaptiveLARL(2), larl.AdaptiveLARL(2).init(2)) or ()) == ["s = 0", "s = 1", "s = 2"]
    assert model_weights(larl.LARLBIC(20, s_max=4), larl.LARLBIC(20, s_max=4).init(2)) is None
    assert model_weights(larl.UCB(), larl.UCB().init(2)) is None


@pytest.mark.parametrize("spec", [larl.Auto(orders=(1, 3), particles=32), larl.AdaptiveLARL(2)], ids=str)
def test_contexts_do_not_hide_the_weights(spec: larl.policies.Policy) -> None:
    with_context = replace(spec, context=2)  # type: ignore[call-arg]
    found = model_weights(with_context, with_context.init(2))
    assert list(found or ()) == list(model_weights(spec, spec.init(2)) or ())


@pytest.mark.parametrize("spec", [larl.LARLBIC(5, s_max=3)], ids=str)
def test_weights_are_those_of_the_agent_that_decides(tmp_path: Path, spec: larl.policies.Policy) -> None:
    with service_client(tmp_path) as client:
        create_study(client, policy=spec.to_dict(), max_delay=4)
        for i in range(12):
            found = decide(client, f"k{i}", "u")
            reward(client, f"k{i}", found["id"], float(i % 3))
            overview_of_unit = content(client.get("/v1/studies/sleep/unit-overview?unit=u"))
            handle = client.app.state.service.commands.batch("sleep").studies.agents.cache.get(("sleep", "u"))
            assert overview_of_unit["has_weights"] is True
            assert overview_of_unit["weights"] == model_weights(spec, handle.agent.state)
        assert overview_of_unit["weights"] is not None
