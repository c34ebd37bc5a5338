"""`compare`: invalid arguments, what is kept, and independence of policies, threads and blocks."""

import json
import math

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation.moments import LEVELS, add_curves, empty_moments, quantiles, variance
from larl.worlds.variants import ChangePoints
from tests.conftest import SPECS, THREE_ARMS, world_of


def test_result_of_a_policy_does_not_depend_on_the_others():
    alone = larl.compare({"LARL": larl.LARL(2)}, THREE_ARMS, horizon=50, trials=6, seed=9)
    policies = {str(spec): spec for spec in SPECS if world_of(spec) == THREE_ARMS} | {"LARL": larl.LARL(2)}
    together = larl.compare(policies, THREE_ARMS, horizon=50, trials=6, seed=9)
    for name in ("regret", "arm", "reward"):
        assert np.array_equal(alone.data[name].sel(policy="LARL"), together.data[name].sel(policy="LARL"))


def test_all_policies_get_the_same_world():
    # Regret plus the mean of the chosen arm is the best mean, for every policy.
    result = larl.compare({"a": larl.Random(), "b": larl.LARL(1)}, THREE_ARMS, horizon=40, trials=3, seed=4)
    for trial in range(3):
        path = THREE_ARMS.path(40, seed=4, trial=trial)
        means = THREE_ARMS.means(path)
        for name in ("a", "b"):
            one = result.data.sel(policy=name, trial=trial)
            assert np.allclose(means.max(1) - means[np.arange(40), one["arm"]], one["regret"])


def test_seeds_and_trials_have_different_noise():
    first = larl.compare({"it": larl.LARL(1)}, THREE_ARMS, horizon=30, trials=4, seed=0)
    second = larl.compare({"it": larl.LARL(1)}, THREE_ARMS, horizon=30, trials=4, seed=1)
    assert not np.array_equal(first.reward, second.reward)
    assert len(np.unique(first.reward.values[0, :, 0])) == 4


def test_longer_horizon_only_adds_steps():
    short = larl.compare({"it": larl.LARL(2)}, THREE_ARMS, horizon=30, trials=3)
    long = larl.compare({"it": larl.LARL(2)}, THREE_ARMS, horizon=60, trials=5)
    assert np.array_equal(short.regret, long.regret[:, :3, :30])


@pytest.mark.parametrize("horizon", [1, 40, 1200])
def test_keep_summary_has_the_statistics_of_keep_all(horizon):
    policies = {"LARL": larl.LARL(1), "UCB": larl.UCB(), "oracle": larl.DynamicOracle()}
    full = larl.compare(policies, THREE_ARMS, horizon=horizon, trials=150, seed=3)
    summary = larl.compare(policies, THREE_ARMS, horizon=horizon, trials=150, seed=3, keep="summary")
    times = summary.data["time"].values
    assert times.size == min(horizon, 500)
    assert times[-1] == horizon - 1
    cumulative = full.regret.cumsum("time").isel(time=times)
    assert np.allclose(summary.total(), full.total(), rtol=1e-12)
    assert np.allclose(summary.data["mean"], cumulative.mean("trial"), rtol=1e-10, atol=1e-12)
    assert np.allclose(summary.data["variance"], cumulative.var("trial", ddof=1), rtol=1e-8, atol=1e-12)
    for level in LEVELS:
        exact = cumulative.quantile(level, "trial", method="inverted_cdf")
        assert np.allclose(summary.data["quantile"].sel(level=level), exact, rtol=0.005, atol=1e-6)


@pytest.mark.parametrize(("threads", "block"), [(1, 64), (2, 1), (2, 10)])
def test_keep_summary_does_not_depend_on_threads_or_blocks(threads, block):
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


def test_keep_summary_of_a_million_steps_is_small():
    result = larl.compare({"it": larl.UCB()}, worlds.paper(1), horizon=1_000_000, trials=2, keep="summary")
    assert result.data.nbytes < 100_000
    assert np.all(np.diff(result.data["mean"]) >= 0)


def test_single_curve_has_zero_variance():
    moments = empty_moments(3)
    add_curves(moments, np.array([[0.0, 1.0, 2.0]]))
    assert variance(moments).tolist() == [0.0, 0.0, 0.0]
    assert quantiles(moments)[:, 0].tolist() == [0.0] * len(LEVELS)
    assert np.allclose(quantiles(moments)[:, 2], 2.0, rtol=0.005)


def test_several_worlds_are_labelled_by_name():
    named_worlds = {"slow": worlds.paper(1), "random": worlds.random(3, 2, 0)}
    result = larl.compare({"a": larl.UCB(), "b": larl.LARL(1)}, named_worlds, horizon=20, trials=5)
    assert result.regret.dims == ("world", "policy", "trial", "time")
    assert result.data["k"].values.tolist() == [1, 3]
    alone = larl.compare({"a": larl.UCB(), "b": larl.LARL(1)}, named_worlds["random"], horizon=20, trials=5)
    assert np.array_equal(result.regret.sel(world="random"), alone.regret)
    specs = json.loads(result.data.attrs["worlds"])
    assert larl.LatentAR.from_dict(specs["random"]) == named_worlds["random"]


VALID = {"policies": {"it": larl.UCB()}, "world": THREE_ARMS, "horizon": 5, "trials": 2}


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_invalid_argument_is_named_with_its_value(change, message):
    with pytest.raises(larl.InvalidValue) as refusal:
        larl.compare(**(VALID | change))
    assert message in str(refusal.value)


def test_impossible_policy_is_refused_before_the_simulation():
    uneven = larl.LatentAR(gammas=[0.8], beta=[0.5, 1.0], mu=[0, 0], noise="common")
    policies = {"slow": larl.LARL(30), "impossible": larl.KalmanOracle(filter="steady")}
    with pytest.raises(larl.InvalidValue, match="steady_state"):
        larl.compare(policies, uneven, horizon=10**6, trials=10**6)


def test_many_arms_without_noise():
    world = larl.LatentAR(gammas=[0.5], beta=range(1, 51), mu=[0.0] * 50, sigma_r=0.0)
    result = larl.compare({"a": larl.LARL(1), "b": larl.Random()}, world, horizon=60, trials=2)
    assert result.arm.max() < 50
    assert math.isfinite(result.total().max())
