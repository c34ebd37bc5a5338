"""A `Deployed` policy in a simulation decides as an agent or a cohort with the same settings, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import larl
from larl.policies._pooling import POOLINGS
from tests.live.cohorts import SPEC, WORLD, step_by_hand

UNITS, ROUNDS, SEED = 4, 30, 3
SETTINGS: list[dict[str, Any]] = [
    {"min_probability": 0.2},
    {"min_probability": {"0": 0.4}, "warm_up": 6},
    {"allocation": "best", "update_every": 5},
    {"allocation": {"kind": "smooth", "slope": 3.0}, "min_probability": 0.05, "update_every": 7, "warm_up": 4},
    {"warm_up": 10, "warm_up_probabilities": {"0": 0.25, "1": 0.75}, "update_every": 3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_simulated_cohort_equals_a_cohort_with_the_same_settings(pooling: str, settings: dict[str, Any]) -> None:
    cohort = larl.Cohort(SPEC, 2, SEED, pooling=pooling, **settings)
    policies = {"it": larl.Deployed(SPEC, **settings)}
    result = larl.compare(policies, WORLD, horizon=ROUNDS, trials=1, seed=SEED, units=UNITS, pooling=pooling)
    arms, rewards = (np.asarray(each)[0, 0] for each in (result.arm, result.reward))
    for unit, decision, reward in step_by_hand(cohort, UNITS, ROUNDS):
        assert (decision.arm, reward) == (str(arms[unit, decision.t]), rewards[unit, decision.t])


@pytest.mark.parametrize("settings", [{}, {"update_every": 1}], ids=str)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_learning_at_every_decision_is_the_policy_itself(pooling: str, settings: dict[str, Any]) -> None:
    policies = {"plain": SPEC, "deployed": larl.Deployed(SPEC, **settings)}
    result = larl.compare(policies, WORLD, horizon=ROUNDS, trials=2, seed=SEED, units=UNITS, pooling=pooling)
    assert np.array_equal(result.arm[0], result.arm[1])


def test_contexts_reach_the_state_that_decides() -> None:
    world = larl.worlds.Contextual(larl.LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0)), eta=((2.0,), (-2.0,)))
    policy = larl.LARL(0, context=1)
    policies = {"plain": policy, "weekly": larl.Deployed(policy, update_every=40), "blind": larl.LARL(0)}
    mean = larl.compare(policies, world, horizon=400, trials=40, seed=SEED).summary()["mean"]
    assert mean["plain"] < mean["weekly"] < 0.8 * mean["blind"]


def test_allocations_and_schedules_cost_regret() -> None:
    policies = {
        "ucb": SPEC,
        "best": larl.Deployed(SPEC, allocation="best"),
        "smooth": larl.Deployed(SPEC, allocation="smooth"),
        "random": larl.Deployed(SPEC, warm_up=200),
    }
    result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=100, seed=SEED)
    total = {name: result.total().sel(policy=name).values for name in policies}
    for less, more in (("best", "smooth"), ("smooth", "random")):
        difference = total[more] - total[less]
        assert difference.mean() > 4.0 * difference.std(ddof=1) / 10.0
    share = (result.arm.sel(policy="random") == 1).mean().item()
    assert abs(share - 0.5) < 4.0 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize("settings", [{}, *SETTINGS], ids=str)
def test_spec_is_written_with_the_fields_of_its_policy(settings: dict[str, Any]) -> None:
    policy = larl.Deployed(SPEC, **settings)
    values = policy.to_dict()
    assert values["policy"] == "LARL"
    assert larl.policies.from_dict(values) == policy
    assert larl.policies.from_json(policy.to_json()) == policy
    assert hash(larl.policies.from_dict(values)) == hash(policy)
    assert larl.policies.from_dict(SPEC.to_dict()) == SPEC


def test_study_file_has_the_settings_as_keys_of_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "horizon = 20\ntrials = 2\nworlds.drift.paper = 1\n[policies.LARL]\npolicy = 'LARL'\ns = 1\nupdate_every = 5\n"
        "min_probability = {'0' = 0.3}\n[policies.LARL.grid]\nallocation = ['ucb', 'best']\n"
    )
    study = larl.study.read_study(path)
    settings: dict[str, Any] = {"min_probability": {"0": 0.3}, "update_every": 5}
    assert study.policies == {
        f"LARL allocation={kind}": larl.Deployed(larl.LARL(1), allocation=kind, **settings) for kind in ("ucb", "best")
    }
    assert study.run(progress=False).data.sizes["policy"] == 2
    path.write_text(path.read_text().replace("'best'", "'greedy'"))
    with pytest.raises(larl.InvalidValue, match=r"study.toml:\d+: policies.LARL: allocation = 'greedy'"):
        larl.study.read_study(path)
    path.write_text(path.read_text().replace("'greedy'", "'best'").replace("'0' = 0.3", "'2' = 0.3"))
    with pytest.raises(larl.InvalidValue, match=r"min_probability = '2' .*only the arms 0, 1"):
        larl.study.read_study(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: larl.Deployed(SPEC, update_every="night"), "update_every = 'night' .*no calendar"),
        (lambda: larl.Deployed(SPEC, update_every=0), "Deployed: update_every = 0 .*≥ 1, 'night', or None"),
        (lambda: larl.Deployed(larl.DynamicOracle()), "Deployed: policy = DynamicOracle"),
        (lambda: larl.Deployed(larl.Deployed(SPEC)), "Deployed: policy = Deployed"),
        (lambda: larl.Deployed(larl.Exp3(0.2, (0.0, 1.0)), allocation="best").init(2), "Deployed: allocation = "),
        (lambda: larl.Agent(larl.Deployed(SPEC), 2), "Agent: policy = Deployed.* are settings beside the policy"),
        (lambda: larl.Deployed(SPEC, warm_up_probabilities={"0": 0.5}), "warm_up_probabilities = .*the sum 1"),
    ],
)
def test_unusable_deployments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        make()


def test_pooling_of_a_deployed_policy_needs_a_policy_that_pools() -> None:
    policies = {"it": larl.Deployed(larl.ThompsonSampling(), update_every=2)}
    with pytest.raises(larl.InvalidValue, match="whose units can share"):
        larl.compare(policies, WORLD, horizon=5, trials=1, units=2, pooling="full")
