"""`learn_prior`: what it finds in simulated pilots, its files, its errors, and rewards of all kinds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import larl
from larl._core.progress import Progress
from larl.cli import app
from larl.priors.learn import weigh
from larl.simulation.study_file import read_policy
from tests.stepping import learn

QUICK = {"orders": (1, 2)}


def pilot_of(world: larl.worlds.World, units: int, steps: int, seed: int) -> pd.DataFrame:
    """The log of units whose decisions were random."""
    result = larl.compare({"random": larl.Random()}, world, horizon=steps, trials=units, seed=seed)
    return result.data[["arm", "reward"]].squeeze("policy").to_dataframe().reset_index()


@pytest.fixture(scope="module")
def pilot() -> pd.DataFrame:
    world = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(2, 3), start="stationary")
    return pilot_of(world, 20, 140, seed=5)


@pytest.fixture(scope="module")
def prior(pilot: pd.DataFrame) -> larl.Prior:
    return larl.learn_prior(pilot, unit="trial", **QUICK)


def test_parameters_of_the_population_are_found(prior: larl.Prior) -> None:
    part = prior.components[0]
    assert (prior.units, prior.steps, prior.arms, prior.rewards) == (20, 2800, ("0", "1"), "continuous")
    assert part.order == 1
    error = np.sqrt(part.mean_covariance[0][0])
    assert abs(part.mean[0] - np.arctanh(0.9)) < 3.0 * error
    assert error < 0.15
    assert part.same_sign[1] < 0.1  # the arms' β are −1 and 1
    assert part.level[1] - part.level[0] == pytest.approx(1.0, abs=0.35)  # 3 standard errors of 20 × 140 rewards
    assert part.spread[0] < 0.3  # units do not differ


def test_prior_reduces_the_regret_of_new_units(prior: larl.Prior) -> None:
    world = larl.LatentAR(gammas=(0.9,), beta=(-1, 1), mu=(2, 3), start="stationary")
    policies = {"alone": larl.Auto(), "after a pilot": larl.Auto(prior=prior)}
    totals = larl.compare(policies, world, horizon=40, trials=80, seed=77).total()
    gain = (totals.sel(policy="alone") - totals.sel(policy="after a pilot")).values
    assert gain.mean() > 3.0 * gain.std(ddof=1) / np.sqrt(gain.size)


def test_several_logs_are_the_same_as_one(pilot: pd.DataFrame, prior: larl.Prior) -> None:
    logs = [each.drop(columns="trial") for _, each in pilot.groupby("trial")]
    split = larl.learn_prior(logs, **QUICK)
    assert split.components == prior.components


def test_file_and_json_keep_the_prior(prior: larl.Prior, tmp_path: Path) -> None:
    path = prior.save(tmp_path / "prior.json")
    loaded = larl.Prior.load(path)
    assert loaded == prior  # to the last bit: an agent from a file must continue as the one that was saved
    assert path.stat().st_size < 30_000
    policy = larl.Auto(prior=prior)
    assert larl.policies.from_json(policy.to_json()) == policy
    assert hash(policy) == hash(larl.Auto(prior=larl.Prior.load(path)))
    assert read_policy({"policy": "Auto", "prior": "prior.json"}, "study", tmp_path) == policy
    assert "prior" not in larl.Auto().to_dict()


def test_text_and_html_name_the_parameters(prior: larl.Prior) -> None:
    assert "partial autocorrelation 1" in str(prior)
    assert str(prior).count("Order") == len(prior.components)
    assert "<table" in prior._repr_html_()
    assert repr(prior).startswith("<Prior of 20 units")


def test_agent_needs_the_arms_of_the_prior(prior: larl.Prior) -> None:
    larl.Agent(larl.Auto(prior=prior), arms=["0", "1"])
    with pytest.raises(larl.InvalidValue, match=r"arms = \['1', '0'\].*prior: \['0', '1'\]"):
        larl.Agent(larl.Auto(prior=prior), arms=["1", "0"])
    with pytest.raises(larl.InvalidValue, match="a prior of 3 arms"):
        larl.Auto(prior=prior).init(3)


def test_agent_with_a_prior_is_saved_and_loaded(prior: larl.Prior, tmp_path: Path) -> None:
    agent = larl.Agent(larl.Auto(prior=prior, particles=16, orders=(1,)), arms=prior.arms, seed=2)
    for t in range(12):
        agent.observe(agent.decide(), 2.0 + 0.1 * (t % 3))
    again = larl.Agent.load(agent.save(tmp_path / "agent.json"))
    assert again.decide() == agent.decide()


def damaged(prior: larl.Prior, **changes: object) -> dict[str, object]:
    values = json.loads(json.dumps(prior.to_dict()))
    values["components"] = [values["components"][0] | {"weight": 1.0} | changes]
    return values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spread": [1.0]}, "spread"),
        ({"mean_covariance": [[1.0]]}, "mean_covariance"),
        ({"same_sign": [0.5, 1.0]}, "same_sign"),
        ({"weight": 0.4}, "sum to 0.4"),
        ({"order": 0}, r"components\[0\]\.order = 0"),
        ({"unknown": 1}, r"components\[0\]\.unknown = 1"),
        ({"spread": [1e-170] * 7}, r"components\[0\]\.spread"),
        ({"mean": [1e6] * 7}, r"components\[0\]\.mean"),
        ({"spread": [1e-6] * 7, "mean_covariance": [[1.0] * 7] * 7}, "nearly singular"),
        ({"errors": 1e16}, r"components\[0\]\.errors"),
    ],
)
def test_damaged_priors_are_refused(prior: larl.Prior, changes: dict[str, object], message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        larl.Auto(prior=damaged(prior, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "schema = 2"),
        ({"components": [3]}, r"components\[0\] = 3"),
        ({"unit_summaries": [{"name": [1], "rewards": 3, "autocorrelation": 0.1}]}, r"unit_summaries\[0\]\.name"),
        ({"unit_summaries": [{"name": "a", "rewards": 3, "autocorrelation": 0.1, "floor": 1}]}, r"\[0\]\.floor = 1"),
    ],
)
def test_damaged_mappings_are_refused(prior: larl.Prior, changes: dict[str, object], message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=message):
        larl.Auto(prior=prior.to_dict() | changes)  # type: ignore[arg-type]


def test_orders_of_components_are_different(prior: larl.Prior) -> None:
    part = prior.components[0]
    twice = (replace(part, weight=0.5),) * 2
    with pytest.raises(larl.InvalidValue, match=r"orders \[1, 1\]"):
        replace(prior, components=twice)


def test_policies_do_not_contain_the_names_of_units(prior: larl.Prior) -> None:
    assert prior.unit_summaries
    policy = larl.Auto(prior=prior)
    assert policy.prior is not None
    assert policy.prior.unit_summaries == ()
    assert policy.prior.components == prior.components
    assert policy.to_dict()["prior"]["unit_summaries"] == []


def test_agent_from_a_file_continues_bit_for_bit(prior: larl.Prior, tmp_path: Path) -> None:
    first = larl.Agent(larl.Auto(prior=prior, particles=16, orders=(1,)), arms=prior.arms, seed=2)
    second = larl.Agent.load(first.save(tmp_path / "agent.json"))
    for _ in range(3):
        decisions = [agent.decide() for agent in (first, second)]
        assert decisions[0] == decisions[1]
        first.observe(decisions[0], 0.7)
        second.observe(decisions[1], 0.7)


def test_binary_priors_have_labels_of_their_own() -> None:
    rows = {"t": range(6), "arm": list("aabbab"), "reward": [0, 1, 1, 0, 1, 1]}
    text = str(larl.learn_prior(pd.DataFrame(rows), orders=(1,)))
    assert "factor of all β" in text
    assert "noise variance" not in text


def test_arms_are_in_numerical_order_whatever_the_logs() -> None:
    rewards = [0.1, 0.5, 0.2, 0.9]
    logs = [pd.DataFrame({"t": range(4), "arm": arms, "reward": rewards}) for arms in ([2, 10, 2, 10], [1, 2, 1, 2])]
    assert larl.learn_prior(logs, orders=(1,)).arms == ("1", "2", "10")


@pytest.mark.parametrize("arms", [["a", "b", "a"], "ab", ["a", "b", 3], ["a"]])
def test_wrong_arms_are_refused_before_the_fit(pilot: pd.DataFrame, arms: object) -> None:
    with pytest.raises(larl.InvalidValue, match="learn_prior: arms = "):
        larl.learn_prior(pilot, unit="trial", arms=arms)  # type: ignore[arg-type]


def test_progress_reaches_the_end(pilot: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Progress] = []
    monkeypatch.setattr("larl.priors.learn.Progress", lambda *given: bars.append(Progress(*given)) or bars[0])
    larl.learn_prior(pilot[pilot["trial"] < 2], unit="trial", orders=(1,), progress=True)
    assert bars[0].line().startswith("100%")


def test_wrong_arguments_are_refused(pilot: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(larl.InvalidValue, match="one or more logs"):
        larl.learn_prior([])
    with pytest.raises(larl.InvalidValue, match="orders"):
        larl.learn_prior(pilot, unit="trial", orders=(2, 1))
    with pytest.raises(larl.InvalidValue, match="two or more rewards"):
        larl.learn_prior(pd.DataFrame({"t": [0, 1], "arm": ["a", "b"], "reward": [1.0, None]}))
    with pytest.raises(larl.InvalidValue, match="two or more different actions"):
        larl.learn_prior(pd.DataFrame({"t": [0, 1], "arm": ["a", "a"], "reward": [1.0, 2.0]}))
    (tmp_path / "no.json").write_text("{")
    with pytest.raises(larl.InvalidValue, match=r"no\.json"):
        larl.Prior.load(tmp_path / "no.json")
    with pytest.raises(larl.InvalidValue, match=r"prior = 'no\.json'"):  # nobody can make a service read its files
        larl.Auto(prior="no.json")  # type: ignore[arg-type]
    with pytest.raises(larl.InvalidValue, match="prior = 3"):
        larl.Auto(prior=3)  # type: ignore[arg-type]


RNG = np.random.default_rng(8)
REWARDS = {
    "constant": np.full(30, 2.5),
    "binary": (RNG.random(30) < 0.3).astype(float),
    "rare": np.eye(1, 30, 7)[0],
    "integers": RNG.integers(0, 5, 30).astype(float),
    "huge": 1e90 * RNG.normal(size=30),
    "tiny": 1e-90 * RNG.normal(size=30),
    "common digits": 1e6 + 1e-6 * RNG.normal(size=30),
    "missing": np.where(RNG.random(30) < 0.5, np.nan, RNG.normal(size=30)),
    "outlier": np.where(np.arange(30) == 20, 1e6, RNG.normal(size=30)),
    "alternating": np.resize([1e30, -1e30], 30),
}


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("kind", REWARDS)
def test_every_kind_of_reward_gives_a_finite_prior_and_state(kind: str, units: int) -> None:
    reward = REWARDS[kind]
    log = pd.DataFrame(
        [
            {"user": user, "t": t, "arm": "ab"[(t + user) % 2], "reward": value}
            for user in range(units)
            for t, value in enumerate(np.roll(reward, user))
        ]
    )
    prior = larl.learn_prior(log, orders=(1, 2))
    numbers = [n for part in prior.components for n in (*part.mean, *part.spread, *part.level, part.shock_sd)]
    assert np.isfinite(numbers).all()
    assert prior.rewards == ("binary" if kind in ("binary", "rare") else "continuous")
    state = larl.Auto(prior=prior, orders=(1,), particles=16).init(2)
    for t, value in enumerate(reward):
        learn(state, t % 2, value)
        assert np.isfinite(state.score).all()
    assert np.isfinite(state.smc.data).all()


def test_a_prior_of_binary_rewards_is_not_used_for_continuous_ones() -> None:
    log = pd.DataFrame({"t": range(40), "arm": 20 * ["a", "b"], "reward": 20 * [0.0, 1.0]})
    prior = larl.learn_prior(log, orders=(1,))
    state, plain = (larl.Auto(orders=(1,), particles=16, prior=each).init(2) for each in (prior, None))
    for t in range(30):
        for each in (state, plain):
            learn(each, t % 2, 5.0 + 0.1 * t)  # no reward is 0 or 1
    assert np.array_equal(state.score, plain.score)


def test_orders_are_weighed_by_evidence_and_the_largest_stays() -> None:
    from larl.priors.units import model_kind

    class Fit:
        def __init__(self, order: int, log_evidence: float) -> None:
            self.kind, self.log_evidence = model_kind(2, order, 0), log_evidence

    chosen = weigh([Fit(1, -50.0), Fit(2, 0.0), Fit(4, -30.0), Fit(10, -90.0)])  # type: ignore[list-item]
    assert [fit.kind.p for fit, _ in chosen] == [2, 4, 10]
    assert [weight for _, weight in chosen] == pytest.approx([1.0 / 1.2, 0.1 / 1.2, 0.1 / 1.2])


def test_command_writes_the_prior_and_its_page(pilot: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "pilot.csv"
    pilot[(pilot["trial"] < 2) & (pilot["time"] < 25)].to_csv(path, index=False)
    done = CliRunner().invoke(app, ["learn-prior", str(path), "--unit", "trial", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "partial autocorrelation 1" in done.stdout
    assert larl.Prior.load(tmp_path / "out" / "prior.json").units == 2
    page = (tmp_path / "out" / "prior.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == 2
    wrong = CliRunner().invoke(app, ["learn-prior", str(path), "--unit", "nobody", "--out", str(tmp_path / "no")])
    assert wrong.exit_code == 2
    assert not (tmp_path / "no").exists()
