"""An agent's file is exact and written atomically; a damaged or foreign file is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import larl
from larl.live import files
from larl.policies import Policy
from tests.conftest import world_of
from tests.live.test_agent import live_specs, same


def make_agent(spec: Policy, steps: int = 30) -> larl.Agent:
    agent = larl.Agent(
        spec, ["a", "b", "c"], seed=9, min_probability=0.1, max_delay=7, horizon=40, world=world_of(spec)
    )
    for t in range(steps):
        decision = agent.decide()
        if t % 3:
            agent.observe(decision, float(t % 5) - 2.0)
    return agent


@pytest.mark.parametrize("spec", live_specs(), ids=str)
def test_loaded_agent_continues_identically(spec: Policy, tmp_path: Path) -> None:
    agent = make_agent(spec)
    again = larl.Agent.load(agent.save(tmp_path / "agent.json"))
    assert (again.policy, again.world, again.counts) == (agent.policy, agent.world, agent.counts)
    for _ in range(10):
        one, other = agent.decide(), again.decide()
        assert one == other
        assert agent.observe(one, 0.3) == again.observe(other, 0.3)
    assert same(agent.state, again.state)


def edited(values: dict[str, Any]) -> str:
    return json.dumps(values | {"min_probability": 0.2})


DAMAGED = {
    "is incomplete": lambda text: text[: len(text) // 2],
    "edited or damaged": lambda text: edited(json.loads(text)),
    "is not the file of an agent": lambda _: "time,action,reward\n0,1,2\n",
    "no format": lambda _: '{"a": 1}',
    "schema 4": lambda text: json.dumps(json.loads(text) | {"schema": 4}),
    "schema 99": lambda text: json.dumps(json.loads(text) | {"schema": 99}),
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged_file_is_refused_and_not_overwritten(message: str, tmp_path: Path) -> None:
    agent = make_agent(larl.UCB())
    path = agent.save(tmp_path / "agent.json")
    text = DAMAGED[message](path.read_text())
    path.write_text(text)
    with pytest.raises(larl.InvalidFile, match=message):
        larl.Agent.load(path)
    with pytest.raises(larl.InvalidFile, match=message):
        make_agent(larl.UCB()).save(path)
    assert path.read_text() == text


def test_missing_binary_and_other_agents_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(larl.InvalidFile, match="cannot be read"):
        larl.Agent.load(tmp_path / "absent.json")
    (tmp_path / "figure.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(larl.InvalidFile, match="not text"):
        larl.Agent.load(tmp_path / "figure.png")
    path = make_agent(larl.UCB()).save(tmp_path / "agent.json")
    with pytest.raises(larl.InvalidValue, match="the file of this agent"):
        make_agent(larl.Random()).save(path)
    assert larl.Agent.load(path).policy == larl.UCB()


def test_state_that_does_not_fit_policy_is_refused(tmp_path: Path) -> None:
    values = files.read(make_agent(larl.UCB()).save(tmp_path / "agent.json"))
    for change, message in (({"weight": None}, "unexpected or missing arrays"), ({}, "shape")):
        state = dict(values["base"]["state"])
        if change:
            del state["weight"]
        else:
            state["weight"] = state["weight"] | {"shape": [4]}
        path = files.write(tmp_path / "other.json", values | {"base": values["base"] | {"state": state}})
        with pytest.raises(larl.InvalidFile, match=message):
            larl.Agent.load(path)


def test_file_size_does_not_grow_with_time(tmp_path: Path) -> None:
    sizes = [make_agent(larl.LARL(2), steps).save(tmp_path / f"{steps}.json").stat().st_size for steps in (100, 1000)]
    assert sizes[1] < 1.1 * sizes[0]


def test_file_of_other_trial_is_not_overwritten(tmp_path: Path) -> None:
    path = larl.Agent(larl.UCB(), 2, trial=1).save(tmp_path / "agent.json")
    assert larl.Agent.load(path).trial == 1
    with pytest.raises(larl.InvalidValue, match="trial = 1"):
        larl.Agent(larl.UCB(), 2).save(path)
