"""Binary rewards and counts: the choice of the model, the filter against brute force, the answers, odd logs."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom, norm

import larl
from larl.diagnosis import replay as replays
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import find_drift
from larl.diagnosis.fit import fit_from_guesses, initial_guesses, refine
from larl.diagnosis.fitted_worlds import fitted_world, linear_world
from larl.diagnosis.glm import BinaryModel, CountModel, GLMModel, mean_rewards, population_average
from larl.diagnosis.model import Model, first_setting
from larl.diagnosis.rewards import choose_reward_model
from larl.statespace.assumed_density import BINARY, COUNT, predict_rewards
from larl.statespace.smoother import ARParameters, innovations
from tests.diagnosis.logs import simulate_binary, simulate_counts

SHAPE = 0.5  # dispersion of counts


def settings(gamma: float, mu: list[float], beta: list[float], level: float = 0.0) -> ARParameters:
    """Return one setting of order 1, with a state of variance 1."""
    return ARParameters(
        gammas=np.array([[gamma]]),
        acf=np.array([[1.0, gamma]]),
        shock=np.array([1.0 - gamma**2]),
        mu=np.array([mu]),
        beta=np.array([beta]),
        variance=np.full((1, len(mu)), SHAPE),
        level=np.array([level]),
        start=np.ones(1),
    )


def density(kind: int, reward: float, eta: np.ndarray) -> np.ndarray:
    """Return p(reward | η)."""
    if kind == BINARY:
        return norm.cdf(eta / 1.7 if reward else -eta / 1.7)
    return nbinom.pmf(reward, 1.0 / SHAPE, 1.0 / (1.0 + SHAPE * np.exp(eta)))


@pytest.mark.parametrize("kind", [BINARY, COUNT], ids=["binary", "count"])
@pytest.mark.parametrize("e", [-2.0, 0.5, 3.0])
@pytest.mark.parametrize("v", [0.01, 0.5, 3.0])
def test_one_reward_gives_the_moments_of_the_posterior(kind, e, v):
    eta = np.linspace(e - 10 * math.sqrt(v), e + 10 * math.sqrt(v), 20_001)
    for reward in (0.0, 1.0) if kind == BINARY else (0.0, 1.0, 7.0, 60.0):
        weight = density(kind, reward, eta) * norm.pdf(eta, e, math.sqrt(v))
        total = np.trapezoid(weight, eta)
        mean = np.trapezoid(weight * eta, eta) / total
        variance = np.trapezoid(weight * (eta - mean) ** 2, eta) / total
        one = settings(0.0, [e], [math.sqrt(v)])
        told = predict_rewards(kind, np.zeros(1, int), np.zeros(1, int), np.array([reward]), one)
        gain = v / told.innovation_variance[0, 0]
        assert told.log_density[0, 0] == pytest.approx(math.log(total), abs=1e-3)
        assert e + gain * told.innovation[0, 0] == pytest.approx(mean, abs=2e-3 * math.sqrt(variance))
        assert v - v * gain == pytest.approx(variance, rel=6e-3)


@pytest.mark.parametrize("kind", [BINARY, COUNT], ids=["binary", "count"])
def test_likelihood_of_a_log_is_close_to_that_of_a_filter_on_a_grid(kind):
    # The grid filter has no approximation but its 801 points. Assumed-density filtering errs by < 0.02 in 30 rewards.
    generator = np.random.default_rng(0)
    arm, gap = generator.integers(2, size=30), generator.integers(1, 3, size=30)
    gap[0], gap[15] = 0, 0  # two units
    reward = generator.integers(2, size=30) * (1.0 if kind == BINARY else 2.0)
    one = settings(0.8, [-0.3, 0.4], [1.0, -0.7])
    told = predict_rewards(kind, arm, gap, reward, one)
    z = np.linspace(-6.0, 6.0, 801)
    move = norm.pdf(z[None, :], 0.8 * z[:, None], 0.6)
    move /= move.sum(axis=1, keepdims=True)
    expected, belief = 0.0, np.zeros(z.size)
    for t in range(30):
        if gap[t] == 0:
            belief = norm.pdf(z) / norm.pdf(z).sum()
        for _ in range(gap[t]):
            belief = belief @ move
        belief = belief * density(kind, reward[t], one.mu[0, arm[t]] + one.beta[0, arm[t]] * z)
        expected += math.log(belief.sum())
        belief /= belief.sum()
    assert told.log_density.sum() == pytest.approx(expected, abs=0.02)


def models(order: int = 2) -> list[GLMModel]:
    """Return a model of binary rewards and one of counts, of three units each."""
    return [
        BinaryModel(make_log(simulate_binary(0.9, 3, 60, seed=1)), order),
        CountModel(make_log(simulate_counts(0.9, 3, 60, seed=1)), order),
    ]


def random_theta(model: Model) -> np.ndarray:
    mean, sd = model.prior
    return mean + 0.5 * sd * np.random.default_rng(1).normal(size=mean.size)


def test_gradient_equals_numerical_gradient():
    for model in models():
        theta, step = random_theta(model), 1e-5
        numeric = [
            (model.log_posterior(theta + step * row) - model.log_posterior(theta - step * row)) / (2 * step)
            for row in np.eye(theta.size)
        ]
        gradient, information = model.gradient_and_information(theta)
        np.testing.assert_allclose(gradient, numeric, rtol=2e-3, atol=2e-2)
        assert np.linalg.eigvalsh(information).min() > 0.0
        assert np.linalg.eigvalsh(model.precision(theta, information)).min() > 0.0


def test_kalman_filter_of_the_gaussian_form_makes_the_same_updates():
    for model in models():
        theta = random_theta(model)
        told, (log, reward, form) = model.predictions(theta[None]), model.gaussian_form(theta)
        error, variance = np.empty((1, log.rows)), np.empty((1, log.rows))
        stacked = ARParameters(*(np.asarray(part)[None] for part in form))
        innovations(log.arm, log.gap, reward, stacked, error, variance)
        np.testing.assert_allclose(variance, told.innovation_variance, rtol=1e-6)
        np.testing.assert_allclose(error, told.innovation, rtol=1e-5, atol=1e-6)


def test_predictable_share_goes_from_nothing_to_the_share_of_the_state():
    for model in models(1):
        one = first_setting(model.parameters(random_theta(model)[None]))
        share, forecasts = model.variance_shares(one, np.array([0.0, 0.3, 1.0]))
        assert forecasts[0] == pytest.approx(0.0, abs=1e-12)
        assert 0.0 < forecasts[1] < forecasts[2] < 1.0
        assert forecasts[2] == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize(("kind", "bound"), [("binary", 0.01), ("count", 1e-9)])
def test_population_average_has_the_mean_reward_of_all_units(kind, bound):
    # By quadrature over levels. The logistic function and its probit approximation differ by at most 0.01.
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    mu, beta, level = np.array([-1.0, 0.5]), np.array([0.8, -0.4]), 0.7
    average_mu, average_beta = population_average(kind, mu, beta, level)
    for z in (-1.0, 0.0, 2.0):
        units = mean_rewards(kind, (mu + beta * z)[:, None] + math.sqrt(level) * nodes)
        expected = units @ weights / weights.sum()
        np.testing.assert_allclose(mean_rewards(kind, average_mu + average_beta * z), expected, atol=bound)


@pytest.mark.parametrize("simulate", [simulate_binary, simulate_counts])
def test_fit_of_a_long_log_recovers_parameters(simulate):
    # 1,500 rewards. Five posterior standard deviations are allowed.
    log = make_log(simulate(0.9, 1, 1500, seed=3))
    model = choose_reward_model(log, None).model_class(log, 1)
    guesses = initial_guesses(model, np.array([-1.0, 1.0]), np.random.default_rng(0))
    sample = model.parameters(refine(fit_from_guesses(model, guesses[:2])).draws(60, np.random.default_rng(0)))
    size = 1.5 if simulate is simulate_binary else 0.6
    for truth, draws in ((0.9, sample.gammas[:, 0]), (size, np.abs(sample.beta[:, 0])), (0.0, sample.mu[:, 0])):
        assert abs(draws.mean() - truth) < 5 * draws.std()
    assert (sample.beta[:, 0] * sample.beta[:, 1] < 0).all()
    assert abs(sample.gammas[:, 0].mean() - 0.9) < 0.1


def test_linear_world_has_the_moments_of_rewards():
    # 400,000 simulated states: the standard error of a mean reward is below 0.001. Without what is not linear in z, the
    # variance of the first arm is 0.01 less.
    world = larl.worlds.LatentGLM(gammas=[0.5], beta=[3.0, -0.4], mu=[0.5, 0.0])
    linear, z = linear_world(world), np.random.default_rng(0).normal(size=400_000)
    z *= math.sqrt(world.process.stationary_var)
    means = world.means(z)
    np.testing.assert_allclose(linear.mu, means.mean(axis=0), atol=0.003)
    np.testing.assert_allclose(linear.beta, (z[:, None] * means).mean(axis=0) / z.var(), atol=0.003)
    total = np.array(linear.beta) ** 2 * z.var() + linear.sd**2
    np.testing.assert_allclose(total, means.mean(axis=0) * (1 - means.mean(axis=0)), atol=0.003)


KINDS = {
    "binary": ("binary", lambda g: g.integers(2, size=200)),
    "Poisson counts": ("count", lambda g: g.poisson(2.0, size=200)),
    "rare counts": ("count", lambda g: g.poisson(0.3, size=200)),
    "a scale of 1 to 5": ("continuous", lambda g: g.integers(1, 6, size=200)),
    "a scale of 0 to 10": ("continuous", lambda g: np.clip(np.round(g.normal(6, 2, size=200)), 0, 10)),
    "mostly ends of a scale": ("continuous", lambda g: g.choice([0, 5, 10], p=[0.4, 0.2, 0.4], size=200)),
    "negative": ("continuous", lambda g: g.poisson(2.0, size=200) - 1),
    "minutes, often 0": ("continuous", lambda g: np.where(g.random(200) < 0.5, 0.0, 180 * g.random(200))),
    "normal": ("continuous", lambda g: g.normal(size=200)),
    "huge": ("continuous", lambda g: g.poisson(2.0, size=200) * 1e30),
}


@pytest.mark.parametrize("name", KINDS)
def test_rewards_decide_their_model(name):
    kind, draw = KINDS[name]
    generator = np.random.default_rng(0)
    log = make_log(pd.DataFrame({"t": range(200), "a": generator.integers(2, size=200), "r": draw(generator)}))
    assert choose_reward_model(log, None).kind == kind
    assert choose_reward_model(log, "continuous").kind == "continuous"


def diagnose(frame: pd.DataFrame, **options) -> larl.Diagnosis:
    return larl.diagnose(frame, replay=False, progress=False, **options)


@pytest.fixture(scope="module")
def binary() -> larl.Diagnosis:
    return diagnose(simulate_binary(0.9, 1, 200, seed=0))


def test_model_is_named_in_text_table_and_page(binary, tmp_path):
    assert binary.rewards.kind == "binary"
    assert "Rewards are modelled as binary" in str(binary)
    assert list(binary.table.verdict)[:2] == ["yes", "yes"]
    assert binary.to_dict()["rewards"] == {"kind": "binary", "reason": "all of them are 0 or 1"}
    assert "noise" not in binary.arms()
    assert {"mu", "beta"} <= {*binary.arms()}
    assert "log odds" in binary.save(tmp_path / "page.html").read_text(encoding="utf-8")
    # A reward lies between 0 and 1, and so does what can be gained.
    assert 0.0 < binary.table.value[1] < 0.5
    assert 0.0 < binary.table.high[4] < 1.0


def test_fitted_world_simulates_rewards_of_the_log(binary):
    world = larl.worlds.from_log(binary)
    assert world == binary.world()
    assert isinstance(world, larl.worlds.LatentGLM)
    assert larl.worlds.from_dict(world.to_dict()) == world
    assert binary.world(3) == fitted_world(binary.estimates.draws[3])
    # The mean reward of random choices, over all draws, is that of the log: 200 rewards have a standard error of 0.035.
    z = np.random.default_rng(0).normal(size=2000)
    means = [each.means(math.sqrt(each.process.stationary_var) * z).mean() for each in map(binary.world, range(100))]
    assert abs(np.mean(means) - binary.log.reward.mean()) < 3 * 0.035
    for wrong in (100, -1):
        with pytest.raises(larl.InvalidValue, match="draw"):
            binary.world(wrong)
    with pytest.raises(larl.InvalidValue, match=r"result of larl\.diagnose"):
        larl.worlds.from_log("log.csv")
    short = diagnose(simulate_binary(0.9, 1, 12, seed=0))
    with pytest.raises(larl.InvalidValue, match="too little data"):
        short.world()


def test_replays_use_the_fitted_worlds_and_a_particle_filter(binary, monkeypatch):
    from larl._core.progress import Progress

    specs = [larl.UCB(standardise=True)]
    monkeypatch.setattr(replays, "candidates", lambda *_: specs)
    for name, value in {"WORLDS": 4, "MAX_TRIALS": 20, "MAX_ARMS": 1}.items():
        monkeypatch.setattr(replays, name, value)
    assert 0 <= replays.predicted_lookback(binary.estimates.draws, 100) <= max(replays.LOOKBACKS)
    result = replays.replay_policies(binary.estimates.draws, 1, 100, seed=0, threads=1, bar=Progress(1, False))
    assert [*result.regret] == ["larl.UCB(standardise=True)", replays.PARTICLE]
    assert result.oracle == replays.PARTICLE
    assert result.oracle not in result.ranked
    # Strong drift: the filter that knows the parameters loses less than UCB and than the log's random choices.
    assert result.regret_of(result.oracle).value < result.regret_of(result.ranked[-1]).value
    assert result.saving_of(result.oracle).low > 0.0


@pytest.mark.parametrize("kind", ["one arm is always 0", "huge counts", "zeros", "ones", "one arm"])
def test_odd_logs_are_diagnosed(kind):
    generator = np.random.default_rng(0)
    frame = simulate_binary(0.9, 1, 120, seed=1)
    if kind == "one arm is always 0":
        frame.loc[frame.a == 0, "r"] = 0.0
    elif kind == "huge counts":
        frame["r"] = generator.integers(0, 1_000_001, size=120)
    elif kind in ("zeros", "ones"):
        frame["r"] = float(kind == "ones")
    else:
        frame["a"] = 0
    result = diagnose(frame, rewards="count" if kind == "huge counts" else None)
    if kind in ("zeros", "ones"):
        assert set(result.table.verdict) == {"nothing varies"}
    else:
        assert result.estimates is not None
        assert all(np.isfinite(draw.forecasts).all() for draw in result.estimates.draws)
    assert "nan" not in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0.0, 2.0], {"rewards": "binary"}, "all rewards are 0 or 1"),
        ([0.5, 2.0], {"rewards": "count"}, "whole numbers from 0"),
        ([0.0, 1e7], {"rewards": "count"}, "1,000,000"),
        ([0.0, 1.0], {"rewards": "gaussian"}, "continuous"),
        ([0.0, 1.0], {"rewards": "binary", "context": "t"}, "context"),
    ],
)
def test_model_that_does_not_fit_the_rewards_is_rejected(values, options, expected):
    frame = pd.DataFrame({"t": range(60), "a": [0, 0, 1] * 20, "r": values * 30})
    with pytest.raises(larl.InvalidValue, match=expected):
        diagnose(frame, **options)


def test_removed_context_makes_rewards_continuous():
    frame = simulate_binary(0.9, 1, 60, seed=1).assign(x=np.arange(60) % 7)
    log = make_log(frame, context="x")
    assert choose_reward_model(log, None).kind == "continuous"
    assert find_drift(log).p_value <= 1.0
