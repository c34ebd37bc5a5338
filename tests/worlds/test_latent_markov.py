"""The world with a hidden Markov chain: its distribution, its limits, its files, and its use."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import larl
import larl.simulation.gym
from larl.simulation.study import read_study
from larl.worlds import LatentMarkov, Simulator, from_dict, random_markov

TRANSITION = ((0.8, 0.15, 0.05), (0.1, 0.9, 0.0), (0.3, 0.3, 0.4))
MEANS = ((0.0, 1.0), (2.0, -1.0), (0.5, 0.4))
WORLD = LatentMarkov(TRANSITION, MEANS, sigma_r=0.5)


def test_simulator_reproduces_engine_trial() -> None:
    result = larl.compare({"it": larl.LARL(1)}, WORLD, horizon=40, trials=2, seed=5)
    for trial in range(2):
        simulator, path = Simulator(WORLD, 5, trial), WORLD.path(40, seed=5, trial=trial)
        for t in range(40):
            arm = int(result.arm[0, trial, t])
            assert isinstance(simulator.z, int)
            assert simulator.z == path[t]
            assert simulator.means.tolist() == list(MEANS[simulator.z])
            assert simulator.reward(arm) == result.reward[0, trial, t].item()
            simulator.advance(arm)


def test_transitions_start_and_noise_have_their_distribution() -> None:
    # 300 trials of 400 steps; binomial and normal standard errors, at most 4 of them.
    counts, first = np.zeros((3, 3)), np.zeros(3)
    for trial in range(300):
        path = WORLD.path(400, seed=2, trial=trial)
        first[path[0]] += 1
        for before, after in pairwise(path):
            counts[before, after] += 1
    rows = counts.sum(axis=1, keepdims=True)
    expected = np.array(TRANSITION)
    assert counts[1, 2] == 0
    assert np.all(np.abs(counts - rows * expected) <= 4 * np.sqrt(rows * expected * (1 - expected)))
    stationary = WORLD.stationary
    assert np.all(np.abs(first - 300 * stationary) <= 4 * np.sqrt(300 * stationary * (1 - stationary)))
    simulator, noise = Simulator(WORLD, 3, 0), []
    for _ in range(4000):
        noise.append((simulator.reward(1) - simulator.means[1]) / 0.5)
        simulator.advance()
    assert abs(np.mean(noise)) < 4 / np.sqrt(4000)
    assert abs(np.var(noise) - 1.0) < 4 * np.sqrt(2 / 4000)


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (TRANSITION, np.linalg.matrix_power(np.array(TRANSITION), 2000)[0]),
        (((1.0,),), [1.0]),
        (((0.0, 1.0), (1.0, 0.0)), [0.5, 0.5]),  # periodic
        (((0.5, 0.5), (0.0, 1.0)), [0.0, 1.0]),  # one state is left for good
        (((1 - 1e-12, 1e-12), (3e-12, 1 - 3e-12)), [0.75, 0.25]),
    ],
)
def test_stationary_distribution(transition: Any, expected: Any) -> None:
    world = LatentMarkov(transition, [[0.0, 1.0]] * len(transition))
    assert world.stationary == pytest.approx(expected, abs=1e-12, rel=1e-3)
    assert world.stationary @ np.array(transition) == pytest.approx(world.stationary, abs=1e-12)


def test_start_probabilities_are_used() -> None:
    world = LatentMarkov(((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0)), start=(0.0, 1.0))
    assert all(world.path(20, trial=trial).tolist() == [1] * 20 for trial in range(20))
    with pytest.raises(larl.InvalidValue, match=r"transition = .* one stationary distribution"):
        _ = world.stationary


def test_json_study_and_random_worlds(tmp_path: Path) -> None:
    for world in (WORLD, LatentMarkov(TRANSITION, MEANS, start=(1, 0, 0)), random_markov(1, 2, 0)):
        assert from_dict(json.loads(json.dumps(world.to_dict()))) == world
    text = (
        "horizon = 10\ntrials = 2\n"
        '[worlds.a]\nworld = "LatentMarkov"\ntransition = [[0.9, 0.1], [0.2, 0.8]]\nmeans = [[0, 1], [1, 0]]\n'
        "[worlds.b]\nrandom = { states = 3, arms = 4, seed = 1, persistence = 0.9, sigma_r = 2.0 }\n"
        '[policies.a]\npolicy = "UCB"\n'
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = read_study(tmp_path / "study.toml")
    assert study.worlds["a"] == LatentMarkov(((0.9, 0.1), (0.2, 0.8)), ((0.0, 1.0), (1.0, 0.0)))
    assert study.worlds["b"] == random_markov(3, 4, 1, persistence=0.9, sigma_r=2.0)
    (tmp_path / "study.toml").write_text(text.replace("persistence", "radius"), encoding="utf-8")
    with pytest.raises(larl.InvalidValue, match=r"random\.radius = 0\.9 .*states, arms, seed, persistence and sigma_r"):
        read_study(tmp_path / "study.toml")


@pytest.mark.parametrize("states", [2, 3, 5])
def test_random_worlds_have_their_persistence_and_several_best_arms(states: int) -> None:
    for seed in range(10):
        world = random_markov(states, 2, seed, persistence=0.7)
        assert np.diag(world.transition).tolist() == [0.7] * states
        assert np.sum(world.transition, axis=1) == pytest.approx(np.ones(states))
        assert len(set(np.argmax(world.means, axis=1))) > 1
        assert world == random_markov(states, 2, seed, persistence=0.7)


def test_gymnasium_environment_reproduces_the_engine() -> None:
    env = gymnasium.make("larl/LatentAR-v0", world=WORLD, horizon=10)
    result = larl.compare({"it": larl.RoundRobin()}, WORLD, horizon=10, trials=1, seed=3)
    _, info = env.reset(seed=3)
    assert info["latent_state"] == WORLD.path(1, seed=3)[0]
    for t in range(10):
        observation, reward, _, truncated, info = env.step(int(result.arm[0, 0, t]))
        assert observation[0] == reward == result.reward[0, 0, t].item()
        assert info["regret"] == result.regret[0, 0, t].item()
    assert truncated


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"transition": ((0.9, 0.2), (0.5, 0.5))}, r"transition\[0\] = \(0.9, 0.2\) .* sum to 1"),
        ({"transition": ((1.1, -0.1), (0.5, 0.5))}, r"transition\[0\] = .*numbers ≥ 0"),
        ({"transition": ((0.5, 0.5),)}, "transition = .*1 rows of 1"),
        ({"transition": ((1.0, 0.0), (0.0, 1.0))}, "start = 'stationary' .*2 probabilities, because the chain"),
        ({"means": ((1.0,), (2.0,))}, "means = .*2 or more means"),
        ({"means": ((1.0, 2.0),)}, "means = .*2 rows, one for each row of transition"),
        ({"sigma_r": -1.0}, "sigma_r = -1.0"),
        ({"start": "uniform"}, "start = 'uniform' .*'stationary' or 2 probabilities"),
        ({"start": (0.5, 0.6)}, "start = .*'stationary' or 2 numbers ≥ 0 that sum to 1"),
        ({"start": (1.0,)}, "start = .*'stationary' or 2 numbers"),
    ],
)
def test_invalid_value_names_field_and_value(fields: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {"transition": ((0.9, 0.1), (0.1, 0.9)), "means": ((0.0, 1.0), (1.0, 0.0))}
    with pytest.raises(larl.InvalidValue, match=f"LatentMarkov: {message}"):
        LatentMarkov(**(valid | fields))
