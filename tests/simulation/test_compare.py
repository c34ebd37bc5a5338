"""Comparisons: what they refuse, what they keep, and that policies do not see each other."""

import json
import math

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation.moments import LEVELS, fold, moments_init, quantiles, variance
from larl.worlds.variants import ChangePoints
from tests.conftest import SPECS, THREE_ARMS


def test_adding_a_policy_changes_no_other():
    alone = larl.compare({"LARL": larl.LARL(2)}, THREE_ARMS, horizon=50, trials=6, seed=9)
    everyone = {str(spec): spec for spec in SPECS} | {"LARL": larl.LARL(2)}
    together = larl.compare(everyone, THREE_ARMS, horizon=50, trials=6, seed=9)
    for name in ("regret", "arm", "reward"):
        assert np.array_equal(alone.data[name].sel(policy="LARL"), together.data[name].sel(policy="LARL"))


def test_policies_meet_the_same_world():
    # Regret plus the mean of the arm played is the best mean, whoever plays.
    result = larl.compare({"a": larl.Random(), "b": larl.LARL(1)}, THREE_ARMS, horizon=40, trials=3, seed=4)
    for trial in range(3):
        path = THREE_ARMS.path(40, seed=4, trial=trial)
        means = THREE_ARMS.means(path)
        for name in ("a", "b"):
            one = result.data.sel(policy=name, trial=trial)
            assert np.allclose(means.max(1) - means[np.arange(40), one["arm"]], one["regret"])


def test_seeds_and_trials_differ():
    first = larl.compare({"it": larl.LARL(1)}, THREE_ARMS, horizon=30, trials=4, seed=0)
    second = larl.compare({"it": larl.LARL(1)}, THREE_ARMS, horizon=30, trials=4, seed=1)
    assert not np.array_equal(first.reward, second.reward)
    assert len(np.unique(first.reward.values[0, :, 0])) == 4


def test_a_longer_horizon_only_adds():
    short = larl.compare({"it": larl.LARL(2)}, THREE_ARMS, horizon=30, trials=3)
    long = larl.compare({"it": larl.LARL(2)}, THREE_ARMS, horizon=60, trials=5)
    assert np.array_equal(short.regret, long.regret[:, :3, :30])


@pytest.mark.parametrize("horizon", [1, 40, 1200])
def test_summary_is_the_summary_of_everything(horizon):
    policies = {"LARL": larl.LARL(1), "UCB": larl.UCB(), "oracle": larl.DynamicOracle()}
    full = larl.compare(policies, THREE_ARMS, horizon=horizon, trials=150, seed=3)
    brief = larl.compare(policies, THREE_ARMS, horizon=horizon, trials=150, seed=3, keep="summary")
    times = brief.data["time"].values
    assert times.size == min(horizon, 500)
    assert times[-1] == horizon - 1
    cumulative = full.regret.cumsum("time").isel(time=times)
    assert np.allclose(brief.total(), full.total(), rtol=1e-12)
    assert np.allclose(brief.data["mean"], cumulative.mean("trial"), rtol=1e-10, atol=1e-12)
    assert np.allclose(brief.data["variance"], cumulative.var("trial", ddof=1), rtol=1e-8, atol=1e-12)
    for level in LEVELS:
        exact = cumulative.quantile(level, "trial", method="inverted_cdf")
        assert np.allclose(brief.data["quantile"].sel(level=level), exact, rtol=0.005, atol=1e-6)


@pytest.mark.parametrize(("threads", "block"), [(1, 64), (2, 1), (2, 10)])
def test_summary_does_not_depend_on_threads_or_blocks(threads, block):
    def run(threads, block):
        return larl.compare(
            {"LARL": larl.LARL(2), "TS": larl.ThompsonSampling()},
            THREE_ARMS,
            horizon=100,
            trials=64,
            seed=3,
            keep="summary",
            threads=threads,
            block=block,
        )

    assert run(threads, block).data.identical(run(2, None).data)


def test_summary_of_a_million_steps_is_small():
    result = larl.compare({"it": larl.UCB()}, worlds.paper(1), horizon=1_000_000, trials=2, keep="summary")
    assert result.data.nbytes < 100_000
    assert np.all(np.diff(result.data["mean"]) >= 0)


def test_moments_of_a_single_curve():
    moments = moments_init(3)
    fold(moments, np.array([[0.0, 1.0, 2.0]]))
    assert variance(moments).tolist() == [0.0, 0.0, 0.0]
    assert quantiles(moments)[:, 0].tolist() == [0.0] * len(LEVELS)
    assert np.allclose(quantiles(moments)[:, 2], 2.0, rtol=0.005)


def test_several_worlds_are_labelled():
    places = {"slow": worlds.paper(1), "random": worlds.random(3, 2, 0)}
    result = larl.compare({"a": larl.UCB(), "b": larl.LARL(1)}, places, horizon=20, trials=5)
    assert result.regret.dims == ("world", "policy", "trial", "time")
    assert result.data["k"].values.tolist() == [1, 3]
    alone = larl.compare({"a": larl.UCB(), "b": larl.LARL(1)}, places["random"], horizon=20, trials=5)
    assert np.array_equal(result.regret.sel(world="random"), alone.regret)
    kept = json.loads(result.data.attrs["worlds"])
    assert larl.LatentAR.from_dict(kept["random"]) == places["random"]


FINE = {"policies": {"it": larl.UCB()}, "world": THREE_ARMS, "horizon": 5, "trials": 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 0}, "horizon = 0"),
        ({"horizon": 2.5}, "horizon = 2.5"),
        ({"trials": -1}, "trials = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": 2**63}, "seed = "),
        ({"keep": "some"}, "keep = 'some'"),
        ({"threads": 0}, "threads = 0"),
        ({"block": 0}, "block = 0"),
        ({"policies": {}}, "policies = {}"),
        ({"policies": [larl.UCB()]}, "a non-empty mapping"),
        ({"policies": {"it": "UCB"}}, r"policies['it'] = 'UCB'"),
        ({"policies": {1: larl.UCB()}}, "policies name = 1"),
        ({"world": "paper"}, r"compare: world = 'paper'"),
        ({"world": {}}, "world = {}"),
        ({"horizon": 2**70}, "horizon = "),
        ({"world": ChangePoints(arms=40_000)}, "at most 32,767 arms"),
    ],
)
def test_refused_with_field_and_value(change, words):
    with pytest.raises(larl.InvalidValue) as refusal:
        larl.compare(**(FINE | change))
    assert words in str(refusal.value)


def test_what_cannot_be_built_is_refused_before_anything_runs():
    uneven = larl.LatentAR(gammas=[0.8], beta=[0.5, 1.0], mu=[0, 0], noise="common")
    policies = {"slow": larl.LARL(30), "impossible": larl.KalmanOracle(filter="steady")}
    with pytest.raises(larl.InvalidValue, match="steady_state"):
        larl.compare(policies, uneven, horizon=10**6, trials=10**6)


def test_many_arms_and_no_noise():
    world = larl.LatentAR(gammas=[0.5], beta=range(1, 51), mu=[0.0] * 50, sigma_r=0.0)
    result = larl.compare({"a": larl.LARL(1), "b": larl.Random()}, world, horizon=60, trials=2)
    assert result.arm.max() < 50
    assert math.isfinite(result.total().max())
