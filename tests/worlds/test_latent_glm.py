"""The world with binary, count and zero-inflated rewards: distributions against scipy, limits, files, and use."""

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy import stats

import larl
import larl.simulation.gym
from larl._core.compile import kernel
from larl.simulation.study import read_study
from larl.worlds import LatentGLM, Simulator, binary, brushing, counts, from_dict, non_gaussian
from larl.worlds.kernels import draw_reward

PROCESS: dict[str, Any] = {"gammas": (0.5, 0.3), "beta": (-1.0, 0.4, 1.5), "mu": (0.2, 0.5, -0.1), "sigma_z": 0.5}
FAMILIES: dict[str, dict[str, Any]] = {
    "logit": {"family": "bernoulli"},
    "probit": {"family": "bernoulli", "link": "probit"},
    "poisson": {"family": "poisson"},
    "negative binomial": {"family": "negative_binomial", "dispersion": 0.7},
    "hurdle": {"family": "hurdle", "upper": 180.0, "offset": 0.8},
}


def world_with(name: str, **fields: Any) -> LatentGLM:
    return LatentGLM(**(PROCESS | FAMILIES[name] | fields))


class Hurdle:
    """The mixture of a point mass at 0 and a beta distribution on (0, upper), in terms of scipy's."""

    def __init__(self, eta: Any, upper: float, offset: float) -> None:
        self.positive, self.part = 1.0 / (1.0 + np.exp(-eta - offset)), stats.beta(np.exp(eta), 1.0, scale=upper)

    def ppf(self, level: Any) -> Any:
        return np.where(level <= 1.0 - self.positive, 0.0, self.part.ppf(1.0 - (1.0 - level) / self.positive))

    def mean(self) -> Any:
        return self.positive * self.part.mean()

    def var(self) -> Any:
        return self.positive * (self.part.var() + self.part.mean() ** 2) - self.mean() ** 2


def reference(name: str, eta: Any) -> Any:
    """Return the distribution of a reward given η, from scipy; `eta` can be an array."""
    if name == "logit":
        return stats.bernoulli(1.0 / (1.0 + np.exp(-eta)))
    if name == "probit":
        return stats.bernoulli(stats.norm.cdf(eta))
    if name == "poisson":
        return stats.poisson(np.exp(eta))
    if name == "negative binomial":
        return stats.nbinom(1.0 / 0.7, 1.0 / (1.0 + 0.7 * np.exp(eta)))
    return Hurdle(eta, 180.0, 0.8)


@kernel
def reward_of(latent: Any, arm: int, noise: float) -> float:
    return draw_reward(latent, arm, noise)


@pytest.mark.parametrize("name", FAMILIES)
def test_rewards_have_the_moments_and_probabilities_of_scipy(name: str) -> None:
    # A constant z, 12,000 steps, 4,000 for each arm. Means and probabilities: 4 standard errors; variances: 5, because
    # that of a sample variance is itself estimated.
    z, size = 0.6, 4000
    fixed = {"gammas": (0.0,), "gamma0": z, "sigma_z": 0.0, "start": larl.Normal(z, 0.0)}
    result = larl.compare({"it": larl.RoundRobin()}, world_with(name, **fixed), horizon=3 * size, trials=1, seed=1)
    for arm in range(3):
        eta = PROCESS["mu"][arm] + PROCESS["beta"][arm] * z
        law, drawn = reference(name, eta), result.reward[0, 0, arm::3].to_numpy()
        assert np.all(result.arm[0, 0, arm::3] == arm)
        assert abs(drawn.mean() - law.mean()) < 4.0 * math.sqrt(law.var() / size)
        squares = (drawn - law.mean()) ** 2
        assert abs(squares.mean() - law.var()) < 5.0 * squares.std() / math.sqrt(size)
        if name == "hurdle":
            zeros = 1.0 - law.positive
            assert abs(np.mean(drawn == 0.0) - zeros) < 4.0 * math.sqrt(zeros * (1.0 - zeros) / size)
            assert stats.kstest(drawn[drawn > 0.0], law.part.cdf).pvalue > 1e-4
            assert drawn.max() <= 180.0
        else:
            for value in range(6):
                p = law.pmf(value)
                assert abs(np.mean(drawn == value) - p) <= 4.0 * math.sqrt(p * (1.0 - p) / size)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("eta", [-18.0, -3.0, 0.0, 2.5, 7.0, 13.0])
def test_reward_is_the_quantile_of_scipy(name: str, eta: float) -> None:
    latent, law = world_with(name).latent(), reference(name, eta)
    latent.base.means[:] = eta
    for noise in np.linspace(-6.0, 5.0, 40):
        level, drawn = stats.norm.cdf(noise), reward_of(latent, 1, noise)
        if name == "hurdle":
            assert drawn == pytest.approx(float(law.ppf(level)), rel=1e-6, abs=1e-200)
        else:  # rounding decides at the edge of a count's probability
            assert law.ppf(level * (1.0 - 1e-8)) <= drawn <= law.ppf(level * (1.0 + 1e-8)), noise


@pytest.mark.parametrize("dispersion", [1e-6, 0.01, 10.0])
def test_quantiles_with_little_and_much_dispersion(dispersion: float) -> None:
    latent = LatentGLM(**PROCESS, family="negative_binomial", dispersion=dispersion).latent()
    for mean in (1e-3, 4.0, 3e4, 1e6):
        law = stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * mean))
        latent.base.means[:] = math.log(mean)
        for noise in (-7.0, -3.0, -0.5, 0.0, 1.0, 3.0):
            level = stats.norm.cdf(noise)
            low, high = law.ppf(level * (1.0 - 1e-7)), law.ppf(level * (1.0 + 1e-7))
            assert low <= reward_of(latent, 0, noise) <= high, (mean, noise)


@pytest.mark.parametrize("name", FAMILIES)
def test_regret_is_the_difference_of_conditional_means(name: str) -> None:
    world = world_with(name, start=larl.JointNormal((1.0, -1.0), ((1.0, 0.5), (0.5, 2.0))))
    result = larl.compare({"it": larl.RoundRobin()}, world, horizon=30, trials=2, seed=5)
    for trial in range(2):
        simulator, path = Simulator(world, 5, trial), world.path(30, seed=5, trial=trial)
        eta = np.array(PROCESS["mu"]) + np.outer(path, PROCESS["beta"])
        means = reference(name, eta).mean()
        assert world.means(path) == pytest.approx(means, rel=1e-12)
        assert world.optimal_arm(path).tolist() == means.argmax(axis=1).tolist()
        for t in range(30):
            arm = int(result.arm[0, trial, t])
            assert simulator.z == path[t]
            assert simulator.means == pytest.approx(means[t], rel=1e-12)
            assert simulator.reward(arm) == result.reward[0, trial, t].item()
            assert result.regret[0, trial, t].item() == pytest.approx(means[t].max() - means[t, arm], abs=1e-9)
            simulator.advance(arm)


def test_latent_state_is_that_of_latent_ar() -> None:
    world = world_with("poisson", gamma0=0.3)
    same = larl.LatentAR(PROCESS["gammas"], PROCESS["beta"], PROCESS["mu"], gamma0=0.3, sigma_z=0.5)
    assert world.path(50, seed=4, trial=2).tolist() == same.path(50, seed=4, trial=2).tolist()
    assert (world.k, world.arms) == (2, 3)


@pytest.mark.parametrize("name", FAMILIES)
def test_huge_parameters_give_finite_rewards_for_any_number_of_threads(name: str) -> None:
    own = {"hurdle": {"upper": 1e50, "offset": -1e100}, "negative binomial": {"dispersion": 10.0}}.get(name, {})
    for size in (1e100, 50.0):
        fields = {"mu": (size, -size, 0.0), "beta": (-size, size, 1.0), "sigma_z": size, "gammas": (0.999,)} | own
        runs = [
            larl.compare(
                {"it": larl.RoundRobin()}, world_with(name, **fields), horizon=12, trials=4, block=1, threads=threads
            )
            for threads in (1, 2)
        ]
        assert runs[0].data.identical(runs[1].data)
        assert np.isfinite(runs[0].reward).all()
        assert np.isfinite(runs[0].regret).all()
        assert np.all(runs[0].reward >= 0.0)


def test_json_study_and_html(tmp_path: Path) -> None:
    starts: tuple[Any, ...] = ("stationary", larl.Normal(1.0, 2.0), larl.JointNormal((0, 0), ((1, 0), (0, 1))))
    for name, start in [(name, start) for name in FAMILIES for start in starts]:
        world = world_with(name, start=start, gamma0=0.1)
        assert from_dict(json.loads(json.dumps(world.to_dict()))) == world
        assert LatentGLM.from_dict(world.to_dict()) == world
    assert "hurdle" in world_with("hurdle")._repr_html_()
    assert world_with("logit") == LatentGLM(**PROCESS, link="logit")
    (tmp_path / "study.toml").write_text(
        "horizon = 10\ntrials = 2\n"
        '[worlds.a]\nworld = "LatentGLM"\ngammas = [0.9]\nbeta = [-1, 1]\nmu = [0, 0]\n'
        '[worlds.b]\nworld = "LatentGLM"\nfamily = "hurdle"\nupper = 180\ngammas = [0.9]\nbeta = [-1, 1]\nmu = [0, 0]\n'
        "start = { mean = 0.0, sd = 10.0 }\n"
        '[policies.a]\npolicy = "UCB"\n',
        encoding="utf-8",
    )
    study, shared = read_study(tmp_path / "study.toml"), {"gammas": (0.9,), "beta": (-1, 1), "mu": (0, 0)}
    assert study.worlds["a"] == LatentGLM(**shared)
    assert study.worlds["b"] == LatentGLM(**shared, family="hurdle", upper=180.0, start=larl.Normal(0.0, 10.0))


def test_gymnasium_environment_reproduces_the_engine() -> None:
    world = brushing()
    env = gymnasium.make("larl/LatentAR-v0", world=world, horizon=10)
    result = larl.compare({"it": larl.RoundRobin()}, world, horizon=10, trials=1, seed=3)
    _, info = env.reset(seed=3)
    assert info["latent_state"] == world.path(1, seed=3)[0]
    for t in range(10):
        observation, reward, _, truncated, info = env.step(int(result.arm[0, 0, t]))
        assert observation[0] == reward == result.reward[0, 0, t].item()
        assert info["regret"] == result.regret[0, 0, t].item()
    assert truncated


def test_presets_have_unit_variance_and_changing_best_arms() -> None:
    worlds = non_gaussian()
    assert len(worlds) == len(set(worlds.values())) == 11
    for world in worlds.values():
        assert (world.process.stationary_mean, world.start) == (0.0, "stationary")
        assert world.process.stationary_var == pytest.approx(1.0, rel=1e-12)
        assert len(set(world.optimal_arm([-1.0, 1.0]))) == 2
    assert binary(0.1, 4).means(0.0) == pytest.approx(np.full(4, 0.1))
    assert counts().means(0.0) == pytest.approx(np.full(3, 3.0))
    angle = np.abs(np.angle(np.linalg.eigvals(binary(order=2).process.system.gamma)))
    assert 2.0 * np.pi / angle == pytest.approx(9.2, abs=0.1)
    for make, message in (
        (lambda: binary(1.0), r"worlds\.binary: base = 1\.0"),
        (lambda: binary(arms=3), r"worlds\.binary: arms = 3 .*2 or 4"),
        (lambda: counts(3), r"worlds\.counts: order = 3 .*1 or 2"),
        (lambda: brushing(0), r"worlds\.brushing: order = 0"),
    ):
        with pytest.raises(larl.InvalidValue, match=message):
            make()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"family": "gamma"}, "family = 'gamma' .*'bernoulli' or 'poisson'"),
        ({"link": "log"}, "link = 'log' .*'logit' or 'probit', for family = 'bernoulli'"),
        ({"family": "poisson", "link": "logit"}, "link = 'logit' .*'log', for family = 'poisson'"),
        ({"dispersion": 1.0}, "dispersion = 1.0 .*no value for family = 'bernoulli'; only 'negative_binomial' has it"),
        ({"family": "negative_binomial", "dispersion": 0.0}, "dispersion = 0.0"),
        ({"upper": 2.0}, "upper = 2.0 .*only 'hurdle' has it"),
        ({"offset": 0.0}, "offset = 0.0 .*only 'hurdle' has it"),
        ({"family": "hurdle", "upper": -1.0}, "upper = -1.0"),
        ({"gammas": (1.1,)}, "gammas = .*spectral radius < 1"),
        ({"mu": (0.0, 0.0)}, "mu = .*3 numbers, one for each arm"),
        ({"start": "zero"}, "start = 'zero'"),
        ({"sigma_z": -1.0}, "sigma_z = -1.0"),
    ],
)
def test_invalid_value_names_field_and_value(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=f"LatentGLM: {message}"):
        LatentGLM(**(PROCESS | fields))
