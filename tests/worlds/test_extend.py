"""Worlds from outside the package: their draws are independent, and a comparison has the states of a Simulator."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import larl
from larl._core.states import Memory
from larl.policies import normal
from larl.worlds import World, register_latent, start_bits, step_bits
from larl.worlds.kernels import WorldHandle


class WalkState(NamedTuple):
    means: Any  # (arms,)
    sd: Any  # (arms,)
    effect: Any  # (1,) of the last action


def begin(latent: WalkState, seed: int, trial: int) -> None:
    bits = start_bits(seed, trial)
    for arm in range(latent.means.size):
        latent.means[arm] = normal(bits)
    latent.effect[0] = 0.0


def advance(latent: WalkState, key: Any, t: int) -> float:
    bits = step_bits(key, t)
    for arm in range(latent.means.size):
        latent.means[arm] += 0.1 * normal(bits) + latent.effect[0]
    return normal(bits)


def apply_action(latent: WalkState, arm: int) -> None:
    latent.effect[0] = -0.5 * arm


register_latent(WalkState, begin, advance, apply_action)


@dataclass(frozen=True)
class RandomWalk(World):
    """Means that walk at random; arm 1 lowers both."""

    arms: int = 2
    k = 0

    def latent(self) -> WalkState:
        return WalkState(np.zeros(self.arms), np.ones(self.arms), np.zeros(1))


def simulate(trial: int, steps: int, arm: int) -> tuple[np.ndarray, np.ndarray]:
    simulator, means, noise = larl.Simulator(RandomWalk(), seed=2, trial=trial), [], []
    for _ in range(steps):
        means.append(simulator.means)
        noise.append(simulator.reward(arm) - simulator.means[arm])
        simulator.advance(arm)
    return np.array(means), np.array(noise)


def test_draws_of_a_step_are_independent_standard_normals():
    means, noise = simulate(0, 4000, arm=0)
    draws = np.column_stack([10.0 * np.diff(means, axis=0), noise[1:]])
    limit = 4.0 / math.sqrt(len(draws))  # standard errors
    assert np.abs(draws.mean(axis=0)).max() < limit
    assert np.abs(draws.var(axis=0) - 1.0).max() < limit * math.sqrt(2.0)
    assert np.abs(np.corrcoef(draws.T) - np.eye(3)).max() < limit


def test_start_is_drawn_for_each_trial():
    starts = np.array([larl.Simulator(RandomWalk(), seed=2, trial=trial).means for trial in range(400)])
    assert np.abs(starts.mean(axis=0)).max() < 4.0 / math.sqrt(400)
    assert starts.var(axis=0) == pytest.approx(1.01, abs=4.0 * math.sqrt(2.0 / 400))


def test_comparison_has_the_states_of_the_simulator():
    result = larl.compare({"UCB": larl.UCB()}, RandomWalk(), horizon=40, trials=3, seed=5)
    for trial in range(3):
        simulator = larl.Simulator(RandomWalk(), seed=5, trial=trial)
        for t in range(40):
            arm = int(result.arm.values[0, trial, t])
            assert result.regret.values[0, trial, t] == simulator.means.max() - simulator.means[arm]
            assert result.reward.values[0, trial, t] == simulator.reward(arm)
            simulator.advance(arm)


def test_action_has_its_effect():
    (rest, _), (lowered, _) = simulate(0, 20, arm=0), simulate(0, 20, arm=1)
    assert lowered == pytest.approx(rest - 0.5 * np.arange(20)[:, None])


def test_other_functions_for_the_same_state_are_refused():
    with pytest.raises(TypeError, match="WalkState already has another begin"):
        register_latent(WalkState, lambda latent, seed, trial: None, advance)


@pytest.mark.parametrize("means", [np.zeros(2, np.int64), np.zeros((1, 2))])
def test_means_of_another_type_are_refused(means):
    with pytest.raises(TypeError, match=r"WalkState\.means is an array of .* accepted: float64 with one dimension"):
        WorldHandle.of(Memory(RandomWalk().latent()._replace(means=means)))
