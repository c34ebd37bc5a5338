"""Agents and cohorts from files of earlier versions continue as they would have."""

import base64
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl.live.files import _pack_array, digest, pack_state
from larl.live.renamed import upgrade_names
from tests.stepping import learn

OLD = Path(__file__).parent / "old"


def read_cases(name: str) -> dict[str, Any]:
    """By name: the contents of a file, and the next decisions of the version that wrote it."""
    cases: dict[str, Any] = json.loads(gzip.decompress((OLD / name).read_bytes()))
    return cases


def next_decisions(decide: Any, observe: Any, steps: int) -> list[Any]:
    """The next decisions, and the status of each reward."""
    log = []
    for t in range(steps):
        decision = decide(t)
        status = observe(decision, 0.3 * (t % 4) - 0.4)
        log.append(
            [
                decision.arm,
                list(decision.probabilities.values()),
                decision.expected,
                decision.width,
                decision.id,
                str(status),
            ]
        )
    return log


RELEARNT = "Auto-0"  # Auto's State has changed; its agents learn again from the rewards in the file
AGENTS = read_cases("agents-2.json.gz")
STANDARDISED = [name for name, case in AGENTS.items() if case["file"]["policy"].get("standardise")]


@pytest.mark.parametrize("name", [name for name in AGENTS if name not in (RELEARNT, *STANDARDISED)])
def test_schema_2_agent_continues_identically(name: str, tmp_path: Path) -> None:
    case, path = read_cases("agents-2.json.gz")[name], tmp_path / "agent.json"
    path.write_text(json.dumps(case["file"]))
    agent = larl.Agent.load(path)
    assert next_decisions(lambda _: agent.decide(), agent.observe, len(case["next"])) == case["next"]


@pytest.mark.parametrize("name", STANDARDISED)
def test_agent_with_a_running_scale_keeps_what_it_has_learnt(name: str, tmp_path: Path) -> None:
    file, path = AGENTS[name]["file"], tmp_path / "agent.json"
    path.write_text(json.dumps(file))
    agent = larl.Agent.load(path)
    old, new = upgrade_names(file)["base"]["state"], pack_state(agent._history.base.state)
    assert new["scale"] == old["standard"]
    assert {name: new[name] for name in new if name.startswith("inner.")} == {
        name: old[name] for name in old if name.startswith("inner.")
    }
    before = next_decisions(lambda _: agent.decide(), agent.observe, 10)
    again = larl.Agent.load(path)
    assert again.save(tmp_path / "again.json")
    again = larl.Agent.load(tmp_path / "again.json")
    assert next_decisions(lambda _: again.decide(), again.observe, 10) == before


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_agent_with_a_running_scale_and_no_reward_before_its_log_finds_its_scale(offset: float, tmp_path: Path) -> None:
    agent, path = larl.Agent(larl.UCB(standardise=True), 2), tmp_path / "agent.json"
    draws = np.random.default_rng(0)
    for _ in range(40):
        agent.observe(agent.decide(), offset + draws.normal())
    file = json.loads(agent.save(path).read_text())
    assert file["base"]["time"] == 0
    arrays = {"ring": np.zeros(101), "ordered": np.zeros(101), "seen": np.zeros(1, np.int64), "standard": np.zeros(2)}
    old = {name: array for name, array in file["base"]["state"].items() if name.startswith("inner.")}
    file["base"]["state"] = old | {name: _pack_array(array) for name, array in arrays.items()}
    path.write_text(json.dumps(file | {"digest": digest({k: v for k, v in file.items() if k != "digest"})}))
    assert larl.Agent.load(path).decide() == agent.decide()


@pytest.mark.parametrize("pooling", ["full", "partial"])
def test_cohort_with_a_running_scale_keeps_what_it_has_learnt(pooling: str, tmp_path: Path) -> None:
    cohort, path = (
        larl.Cohort(larl.LARL(1, standardise=True), 2, pooling=pooling, max_delay=2),
        tmp_path / "cohort.json",
    )
    for t in range(60):
        cohort.observe(cohort.decide("xyz"[t % 3]), float(t % 7))
    file = json.loads(cohort.save(path).read_text())
    state = file["base"]["state"]
    for name in ("ring", "ordered"):  # earlier versions had the latest 101 rewards
        state[name] = {"type": "<f8", "shape": [101], "data": base64.b64encode(np.zeros(101).tobytes()).decode()}
    state["standard"]["data"] = base64.b64encode(np.array([3.0, 2.0]).tobytes()).decode()
    state["seen"]["data"] = base64.b64encode(np.array([60]).tobytes()).decode()
    path.write_text(json.dumps(file | {"digest": digest({k: v for k, v in file.items() if k != "digest"})}))
    loaded = larl.Cohort.load(path)
    base = loaded.pack()["base"]["state"]
    assert base["standard"] == state["standard"]
    assert {name: base[name] for name in base if name.startswith("inner.")} == {
        name: state[name] for name in state if name.startswith("inner.")
    }
    assert loaded.decide("x").arm


@pytest.mark.parametrize("name", read_cases("cohorts-2.json.gz"))
def test_schema_2_cohort_continues_identically(name: str, tmp_path: Path) -> None:
    case, path = read_cases("cohorts-2.json.gz")[name], tmp_path / "cohort.json"
    path.write_text(json.dumps(case["file"]))
    cohort = larl.Cohort.load(path)
    assert next_decisions(lambda t: cohort.decide("xyzw"[t % 4]), cohort.observe, len(case["next"])) == case["next"]


@pytest.mark.parametrize(("name", "prefix"), [("agents-2.json.gz", "swarm"), ("auto-3.json.gz", "smc")])
def test_agent_with_an_earlier_auto_learns_again_from_the_rewards_in_its_file(
    name: str, prefix: str, tmp_path: Path
) -> None:
    # The rewards of the second file have the values 2 and 5, and its history has been overwritten from the start on.
    file, path = read_cases(name)[RELEARNT]["file"], tmp_path / "agent.json"
    path.write_text(json.dumps(file))
    agent = larl.Agent.load(path)
    arrays = file["base"]["state"]

    def read(name: str) -> Any:
        array = arrays[f"{prefix}.{name}"]
        return np.frombuffer(base64.b64decode(array["data"]), array["type"]).reshape(array["shape"])

    time, past, (offset, unit) = int(read("time")[0]), file["past"], (*read("offset"), 1.0)[:2]
    size = read("history.arm").size
    ring = [t % size for t in range(max(time - size, 0), time)]
    steps = [(int(read("history.arm")[i]), read("history.reward")[i]) for i in ring]
    state = agent.policy.init(2)
    for arm, reward in steps:
        learn(state, arm, math.nan if arm < 0 else offset + unit * reward)
    for arm, reward in zip(past["arm"], past["reward"], strict=True):
        learn(state, arm, math.nan if reward is None else reward)
    decision = agent.decide()
    low = file.get("floor", file.get("min_probability"))
    best = max(range(2), key=lambda arm: state.score[arm])
    assert decision.probabilities == {
        name: pytest.approx(1.0 - low if i == best else low) for i, name in enumerate("ab")
    }
    assert agent.save(tmp_path / "again.json")
    again = larl.Agent.load(tmp_path / "again.json")
    assert again.decide().probabilities == agent.decide().probabilities


def test_agent_with_the_former_arrays_of_the_default_prior_continues_identically(tmp_path: Path) -> None:
    (case,), path = read_cases("auto-4.json.gz").values(), tmp_path / "agent.json"
    path.write_text(json.dumps(case["file"]))
    agent = larl.Agent.load(path)
    assert next_decisions(lambda _: agent.decide(), agent.observe, len(case["next"])) == case["next"]


def test_damaged_history_of_an_earlier_auto_is_refused(tmp_path: Path) -> None:
    file, path = read_cases("agents-2.json.gz")[RELEARNT]["file"], tmp_path / "agent.json"
    arm = file["base"]["state"]["swarm.history.arm"]
    arm["data"] = base64.b64encode(np.full(arm["shape"], 7).tobytes()).decode()
    path.write_text(json.dumps(file | {"digest": digest({k: v for k, v in file.items() if k != "digest"})}))
    with pytest.raises(larl.InvalidFile, match="an arm or a time that does not exist"):
        larl.Agent.load(path)
