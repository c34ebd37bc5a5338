"""MarkovOracle and LatentThompson: the exact belief, its probabilities, and regret in a LatentMarkov world."""

import math
from typing import Any

import numpy as np
import pytest

import larl
from larl._core.states import copy_state
from larl.statespace.forward_filter import forward_path
from larl.theory import greedy_regret
from larl.worlds import LatentMarkov, random_markov
from tests.policies.test_live_functions import simulate_choices
from tests.stepping import decide, learn

WORLD = random_markov(states=4, arms=3, seed=3, persistence=0.8)
MODEL: dict[str, Any] = {"transition": WORLD.transition, "means": WORLD.means, "sigma_r": WORLD.sigma_r}


@pytest.mark.parametrize("spec", [larl.MarkovOracle(), larl.LatentThompson(), larl.LatentThompson(**MODEL)], ids=str)
def test_choices_follow_the_exact_belief(spec: Any) -> None:
    draws = np.random.default_rng(0)
    arms, rewards, means = draws.integers(3, size=30), 2.0 * draws.normal(size=30), np.array(WORLD.means)
    state = copy_state(spec.init(3, world=WORLD))
    for t, belief in enumerate(forward_path(WORLD, arms, rewards)):
        for available in ([True, True, True], [True, False, True], [False, True, True]):
            out, seen, _ = simulate_choices(state, available)
            masked = np.where(available, means, -np.inf)
            if spec == larl.MarkovOracle():
                expected = np.eye(3)[np.argmax(belief @ means + np.where(available, 0.0, -np.inf))]
                assert decide(state, t) == np.argmax(belief @ means)
            else:
                expected = np.bincount(masked.argmax(axis=1), weights=belief, minlength=3)
            assert out == pytest.approx(expected, abs=1e-12)
            arm = int(np.flatnonzero(~np.isnan(seen[:, 0]))[0])
            assert seen[arm, 0] == pytest.approx(belief @ means[:, arm])
        learn(state, int(arms[t]), float(rewards[t]))


def test_missing_reward_only_moves_the_belief() -> None:
    state = copy_state(larl.MarkovOracle().init(3, world=WORLD))
    learn(state, 1, 2.0)
    before = state.filter.belief.copy()
    learn(state, 1, math.nan)
    assert state.filter.belief == pytest.approx(before @ np.array(WORLD.transition), abs=1e-12)


def test_oracle_has_the_simulated_floor_and_no_more_regret_than_others() -> None:
    # 400 trials of 300 steps from a stationary start; 4 standard errors, of paired differences between policies.
    world = random_markov(states=3, arms=3, seed=1, sigma_r=0.5)
    policies = {"oracle": larl.MarkovOracle(), "latent": larl.LatentThompson(), "UCB": larl.UCB()}
    result = larl.compare(policies, world, horizon=300, trials=400, seed=1)
    total = {name: result.data["regret"].sel(policy=name).to_numpy().sum(axis=-1).ravel() for name in policies}
    floor = greedy_regret(world)
    per_step = total["oracle"] / 300
    assert abs(per_step.mean() - floor.mean) < 4.0 * math.hypot(per_step.std() / 20.0, floor.standard_error) + 1e-3
    for better, worse in (("oracle", "latent"), ("latent", "UCB")):
        gap = total[worse] - total[better]
        assert gap.mean() > 4.0 * gap.std() / 20.0


def test_wrong_model_is_not_the_world() -> None:
    flipped = larl.LatentThompson(WORLD.transition, -np.array(WORLD.means), WORLD.sigma_r)
    result = larl.compare({"right": larl.LatentThompson(), "wrong": flipped}, WORLD, horizon=100, trials=50)
    assert result.summary().loc["wrong", "mean"] > 1.5 * result.summary().loc["right", "mean"]


def test_one_state_and_no_noise() -> None:
    one = random_markov(states=1, arms=4, seed=2, sigma_r=0.0)
    result = larl.compare({"o": larl.MarkovOracle(), "l": larl.LatentThompson()}, one, horizon=20, trials=3)
    assert float(result.data["regret"].sum()) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: larl.MarkovOracle().init(2), r"MarkovOracle: world = None .*a larl\.worlds\.LatentMarkov"),
        (lambda: larl.MarkovOracle().init(2, world=larl.worlds.paper(1)), r"MarkovOracle: world = .*LatentMarkov"),
        (lambda: larl.MarkovOracle().init(2, world=WORLD), "MarkovOracle: arms = 2 is not usable; accepted: 3"),
        (lambda: larl.LatentThompson().init(2, world=larl.worlds.paper(1)), r"LatentThompson: world = "),
        (lambda: larl.LatentThompson(means=WORLD.means), "LatentThompson: transition = None"),
        (
            lambda: larl.LatentThompson(((0.9, 0.2), (0.5, 0.5)), ((0, 1), (1, 0)), 1.0),
            r"LatentThompson: transition\[0\]",
        ),
        (lambda: larl.LatentThompson(np.eye(2), ((0, 1), (1, 0)), 1.0), "several stationary distributions"),
    ],
)
def test_unusable_models_are_refused(make: Any, message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        make()


def test_start_of_the_world_is_used() -> None:
    world = LatentMarkov(np.eye(2), ((0.0, 1.0), (1.0, 0.0)), start=(1.0, 0.0))
    for spec in (larl.MarkovOracle(), larl.LatentThompson()):
        assert float(larl.compare({"it": spec}, world, horizon=20, trials=5).data["regret"].sum()) == 0.0
