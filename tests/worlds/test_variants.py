"""Variants of the latent bandit: their distributions, and their use in the engine, the simulator and the policies."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import larl
from larl.worlds import Simulator
from larl.worlds.variants import Burden, ChangePoints, HeavyTails, Outliers, ParameterChange, Seasonal, from_dict
from tests.conftest import THREE_ARMS

BASE = larl.LatentAR(gammas=(0.5, 0.3), beta=(-1.0, 1.5), mu=(0.2, 0.0), gamma0=0.1)
LATER = larl.LatentAR(gammas=(-0.4,), beta=(2.0, 1.0), mu=(0.0, 1.0), sigma_r=0.5)
WORLDS = {
    "tails": HeavyTails(BASE, df=3.0),
    "outliers": Outliers(BASE, share=0.2, size=10.0),
    "change": ParameterChange(BASE, later=LATER, at=15),
    "burden": Burden(BASE, effect=(0.0, -0.7)),
    "changes": ChangePoints(arms=2, hazard=0.1),
    "seasons": Seasonal(mu=(0.0, 0.5), amplitude=(1.0, 0.2), phase=(0.0, 1.0), period=20.0),
}


@pytest.mark.parametrize("name", WORLDS)
def test_simulator_reproduces_engine_trial(name):
    world = WORLDS[name]
    result = larl.compare({"it": larl.UCB()}, world, horizon=40, trials=2, seed=5)
    for trial in range(2):
        simulator = Simulator(world, 5, trial)
        for t in range(40):
            arm = int(result.arm[0, trial, t])
            assert simulator.reward(arm) == result.reward[0, trial, t].item()
            assert simulator.means.max() - simulator.means[arm] == result.regret[0, trial, t].item()
            simulator.advance(arm)


@pytest.mark.parametrize("world", [*WORLDS.values(), BASE], ids=str)
def test_json_round_trip(world):
    assert from_dict(json.loads(json.dumps(world.to_dict()))) == world


def test_wrong_class_and_unknown_arm_are_rejected():
    with pytest.raises(larl.InvalidValue, match="world = 'HeavyTails'"):
        larl.LatentAR.from_dict(BASE.to_dict() | {"world": "HeavyTails"})
    with pytest.raises(larl.InvalidValue, match="Simulator: arm = 2"):
        Simulator(BASE, 0, 0).reward(2)


@pytest.mark.parametrize("name", WORLDS)
def test_result_does_not_depend_on_threads(name):
    one, two = (larl.compare({"UCB": larl.UCB()}, WORLDS[name], horizon=30, trials=7, threads=n) for n in (1, 2))
    assert one.data.identical(two.data)


def test_heavy_tails_has_student_t_noise_and_the_base_path():
    # 20,000 noises of one arm, a Kolmogorov–Smirnov test against the scaled t; the path is the base world's.
    world, noise = HeavyTails(BASE, df=3.0), []
    for trial in range(100):
        simulator, path = Simulator(world, 1, trial), BASE.path(200, seed=1, trial=trial)
        for z in path:
            assert simulator.z == z
            noise.append((simulator.reward(1) - simulator.means[1]) / BASE.sd[1])
            simulator.advance(1)
    assert stats.kstest(noise, stats.t(3, scale=np.sqrt(1 / 3)).cdf).pvalue > 1e-3
    assert stats.kstest(noise, "norm").pvalue < 1e-10


def test_burden_adds_the_effect_of_the_arm_to_the_next_state():
    world, rng = WORLDS["burden"], np.random.default_rng(0)
    simulator, without_effects = Simulator(world, 2, 0), Simulator(BASE, 2, 0)
    offsets = [0.0, 0.0]  # difference of z from the path without effects: the same recursion, driven by the effects
    for t in range(60):
        assert simulator.z - without_effects.z == pytest.approx(offsets[-1], abs=1e-12)
        arm = int(rng.integers(2))
        simulator.advance(arm)
        without_effects.advance()
        effect = world.effect[arm] if t + 1 >= BASE.k else 0.0
        offsets.append(BASE.gammas[0] * offsets[-1] + BASE.gammas[1] * offsets[-2] + effect)
    assert abs(offsets[-1]) > 0.1


def test_change_points_occur_at_the_hazard_rate():
    # 40 trials of 500 steps: the number of changes is binomial.
    world, changes = ChangePoints(arms=3, hazard=0.03, spread=2.0), 0
    levels = []
    for trial in range(40):
        simulator = Simulator(world, 3, trial)
        before = simulator.means
        levels.append(before)
        for _ in range(499):
            simulator.advance(0)
            if not np.array_equal(simulator.means, before):
                assert not np.any(simulator.means == before)
                changes, before = changes + 1, simulator.means
                levels.append(before)
    n, p = 40 * 499, 0.03
    assert abs(changes - n * p) < 4 * np.sqrt(n * p * (1 - p))
    spread = np.ravel(levels)
    assert abs(spread.std() - 2.0) < 4 * 2.0 / np.sqrt(2 * spread.size)


def test_seasonal_means_are_sine_waves():
    simulator = Simulator(WORLDS["seasons"], 0, 0)
    for t in range(50):
        angle = 2 * np.pi * t / 20
        assert simulator.means == pytest.approx([np.sin(angle), 0.5 + 0.2 * np.sin(angle + 1.0)])
        simulator.advance(0)


def test_kalman_oracle_accepts_heavy_tails_but_no_other_variant():
    policies = {"Kalman": larl.KalmanOracle(), "UCB": larl.UCB()}
    result = larl.compare(policies, WORLDS["tails"], horizon=50, trials=5)
    assert result.summary().loc["Kalman", "mean"] < result.summary().loc["UCB", "mean"]
    for name in ("burden", "changes", "seasons"):
        with pytest.raises(larl.InvalidValue, match=r"KalmanOracle: world = .* a larl\.LatentAR"):
            larl.compare(policies, WORLDS[name], horizon=50, trials=5)
        with pytest.raises(larl.InvalidValue, match="LARL: radius"):
            larl.compare({"it": larl.LARL(1, radius="theory")}, WORLDS[name], horizon=50, trials=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeavyTails(BASE, df=2.0), "df = 2.0"),
        (lambda: Outliers(BASE, share=1.5), "share = 1.5"),
        (lambda: ParameterChange(BASE, later=THREE_ARMS), "later = LatentAR"),
        (lambda: ParameterChange(BASE, later=replace(BASE, gammas=(0.1, 0.1)), at=1), "an order of at most 1"),
        (lambda: HeavyTails("paper"), "base = 'paper'"),
        (lambda: Burden(THREE_ARMS, effect=(0.0, 1.0)), "3 numbers"),
        (lambda: ChangePoints(hazard=1.5), "hazard = 1.5"),
        (lambda: ChangePoints(arms=1), "arms = 1"),
        (lambda: Seasonal((0.0, 0.0), (1.0,) * 3, (0.0, 0.0)), "amplitude"),
        (lambda: Seasonal((0.0, 0.0), (1.0, 1.0), (0.0, 0.0), period=0.0), "period = 0.0"),
    ],
)
def test_invalid_value_names_field_and_value(make, message):
    with pytest.raises(larl.InvalidValue) as error:
        make()
    assert message in str(error.value)


def test_outliers_multiply_the_noise_of_a_share_of_the_steps():
    # 4,000 steps: a share of 0.2 of the noises is ten times those of the base world, the others are equal to them.
    world, factors = Outliers(BASE, share=0.2, size=10.0), []
    for trial in range(20):
        simulator, base = Simulator(world, 2, trial), Simulator(BASE, 2, trial)
        for _ in range(200):
            np.testing.assert_array_equal(simulator.means, base.means)
            factors.append((simulator.reward(1) - simulator.means[1]) / (base.reward(1) - base.means[1]))
            simulator.advance()
            base.advance()
    is_outlier = np.isclose(factors, 10.0)
    assert (is_outlier | np.isclose(factors, 1.0)).all()
    assert abs(is_outlier.mean() - 0.2) < 4.0 * np.sqrt(0.2 * 0.8 / is_outlier.size)


def test_parameters_change_once_and_the_state_continues():
    simulator, path = Simulator(ParameterChange(BASE, later=LATER, at=15), 3, 0), BASE.path(15, seed=3)
    shocks, expected, before = [], [], 0.0
    for t in range(40):
        if t < 15:
            assert simulator.z == path[t]
            np.testing.assert_allclose(simulator.means, BASE.means(path[t : t + 1])[0])
        else:
            shocks.append(simulator.z - LATER.gammas[0] * before)
            np.testing.assert_allclose(simulator.means, np.array(LATER.mu) + np.array(LATER.beta) * simulator.z)
        before = simulator.z
        simulator.advance()
    plain, before = Simulator(LATER, 3, 0), 0.0
    for _ in range(40):
        expected.append(plain.z - LATER.gammas[0] * before)
        before = plain.z
        plain.advance()
    np.testing.assert_allclose(shocks, expected[15:], atol=1e-12)  # the shocks are those of the later world
