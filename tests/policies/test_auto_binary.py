"""Auto with binary rewards: the filter against quadrature, and the choice of the observation model."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import larl
from larl._core.compile import kernel
from larl._core.random import policy_bits
from larl.policies.auto.binary import PROBIT_SCALE, probit
from larl.policies.auto.layout import (
    AR_STATE,
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    STATIONARY_AR,
    ModelKind,
    field_offsets,
)
from larl.policies.auto.particle_kalman import measurement_update
from larl.policies.auto.scoring import BINARY_FACTOR, probability_bonus
from larl.policies.auto.soa import LANES
from tests.policies.test_auto import FORMS, random_block, random_rewards, take_steps
from tests.stepping import decide, learn

TINY = larl.Auto(orders=(1, 2), particles=16)


@kernel
def observe(x, fields, kind, t, arm, reward, context):
    measurement_update(x, fields, kind, t, arm, reward, 1.0, context, 0)


@kernel
def tabulated(u):
    return probit(u)


def belief(x, kind, lane):
    """Return the mean and the covariance of a particle's belief."""
    fields, size = field_offsets(kind), kind.arms * (1 + kind.contexts) + kind.p
    cov = np.zeros((size, size))
    cov[np.tril_indices(size)] = x[fields.cov : fields.log_det, lane]
    return x[fields.mean : fields.mean + size, lane].copy(), cov + np.tril(cov, -1).T


def loadings(x, kind, lane, t, arm, context):
    """Return the vector whose product with the state is the linear predictor of an arm at step t."""
    z, first = kind.arms * (1 + kind.contexts), kind.arms + arm * kind.contexts
    fields, h = field_offsets(kind), np.zeros(z + kind.p)
    h[arm], h[first : first + kind.contexts] = 1.0, context
    if kind.form in (AR_STATE, STATIONARY_AR) and kind.p > 0:
        h[z + t % kind.p] = x[fields.beta + arm, lane]
    if kind.form == DAMPED_ROTATION:
        h[z:] = x[fields.beta + arm, lane], x[fields.kappa + arm, lane]
    if kind.form == INDEPENDENT_AR1:
        h[z] = 1.0  # the offset that all arms share
    return h


def probit_moments(mean, variance, reward):
    """Return the probability of a reward, and mean and variance of the predictor after it, by quadrature."""
    sign, sd = 2.0 * reward - 1.0, math.sqrt(variance)

    def moment(power):
        def integrand(eta):
            return eta**power * stats.norm.pdf(eta, mean, sd) * special.ndtr(sign * eta / PROBIT_SCALE)

        return integrate.quad(integrand, mean - 12.0 * sd, mean + 12.0 * sd, epsabs=1e-13, points=[mean], limit=200)[0]

    total = moment(0)
    first = moment(1) / total
    return total, first, moment(2) / total - first * first


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("length", [0, 2], ids=["", "context"])
@pytest.mark.parametrize(("p", "form"), FORMS)
def test_binary_step_has_the_moments_of_the_exact_posterior(p, form, length, reward):
    kind, t = ModelKind(3, p, form, BINARY, length), 17
    fields, (arms, rewards, ones) = field_offsets(kind), random_rewards(3, t, [3], seed=1)
    x, contexts = random_block(kind, 2), np.random.default_rng(9).normal(size=(t + 1, length))
    take_steps(x, fields, kind, arms, (rewards > 0.0).astype(float), ones, 0.0, contexts=contexts)
    before = x.copy()
    observe(x, fields, kind, t, 2, reward, contexts[t:])
    for lane in range(0, LANES, 3):
        mean, cov = belief(before, kind, lane)
        h = loadings(before, kind, lane, t, 2, contexts[t])
        gain, variance = cov @ h, h @ cov @ h
        chance, first, second = probit_moments(h @ mean, variance, reward)
        new_mean, new_cov = belief(x, kind, lane)
        np.testing.assert_allclose(new_mean, mean + gain * (first - h @ mean) / variance, atol=1e-4)
        np.testing.assert_allclose(new_cov, cov - np.outer(gain, gain) * (variance - second) / variance**2, atol=1e-4)
        found = -0.5 * (x[fields.log_det, lane] - before[fields.log_det, lane])
        assert found == pytest.approx(math.log(chance), abs=1e-4)


def test_belief_before_the_first_binary_reward_is_the_prior():
    # c ~ N(0, 1.7²), levels c + N(0, level variance), state N(0, stationary variance): P(1) = ½ for all arms.
    for p, form in FORMS:
        kind = ModelKind(3, p, form, BINARY)
        fields, x = field_offsets(kind), random_block(kind, 5)
        take_steps(x, fields, kind, np.array([1]), np.ones(1), np.ones(1), 0.0)
        np.testing.assert_allclose(x[fields.log_lik], math.log(0.5), atol=1e-12)


def test_probit_table_is_accurate():
    u = np.linspace(-7.99, 7.99, 4001)
    found = np.array([tabulated(value) for value in u])
    np.testing.assert_allclose(found[:, 0], special.log_ndtr(u), atol=1 / 64**2 / 8)  # h²/8 times |second derivative|
    np.testing.assert_allclose(found[:, 1], np.exp(stats.norm.logpdf(u) - special.log_ndtr(u)), atol=2e-5)
    for value in (-40.0, -12.0, -8.0):
        log_cdf, mills = tabulated(value)
        assert log_cdf == pytest.approx(special.log_ndtr(value), abs=1.1 / value**2)
        assert mills == pytest.approx(math.exp(stats.norm.logpdf(value) - special.log_ndtr(value)), rel=1e-3)
    assert tabulated(9.0) == (0.0, 0.0)


def learn_all(spec, rewards, arms=2, shared_draws=None):
    """Return the State after these rewards of alternating arms; `shared_draws` is the step that resets the draws."""
    state = spec.init(arms)
    for t, reward in enumerate(rewards):
        if t == shared_draws:
            state.smc.draws[0] = 0
        learn(state, t % arms, reward)
    return state


@pytest.mark.parametrize(
    ("rewards", "model", "zero", "unit"),
    [
        ([0.0], BINARY, 0.0, 1.0),
        ([1.0, 1.0], BINARY, 0.0, 1.0),
        ([1.0, 0.0, 1.0], BINARY, 0.0, 1.0),
        ([2.0], CONTINUOUS, 2.0, 1.0),
        ([2.0] * 9, CONTINUOUS, 2.0, 1.0),
        ([2.0, -1.0], CONTINUOUS, 2.0, 1.0),
        ([2.0, -1.0, 2.0], BINARY, -1.0, 3.0),
        ([2.0, 2.0, 2.0, 2.0, 5.0], BINARY, 2.0, 3.0),
        ([1.0, 1.0, 5.0], BINARY, 1.0, 4.0),
        ([1.0, 0.5], CONTINUOUS, 0.5, 1.0),
        ([0.0, 1.0, 0.0, 0.5], CONTINUOUS, 0.0, 1.0),
        ([0.0, 1.0, 0.5, 1.0, 0.0, 1.0], CONTINUOUS, 0.0, 1.0),
        ([math.nan, 1.0, math.nan, 0.0], BINARY, 0.0, 1.0),
    ],
    ids=str,
)
def test_observation_model_is_chosen_from_the_rewards(rewards, model, zero, unit):
    smc = learn_all(TINY, rewards).smc
    assert smc.rewards[0] == model
    assert list(smc.offset) == [zero, unit]
    known, size = [reward for reward in rewards if not math.isnan(reward)], smc.seen[0]
    assert size == len(known)
    raw = zero + unit * smc.history.reward[smc.history.arm >= 0]
    np.testing.assert_allclose(raw, known)


@pytest.mark.parametrize("name", ["continuous", "binary"])
def test_observation_model_can_be_given(name):
    model = {"continuous": CONTINUOUS, "binary": BINARY}[name]
    spec = larl.Auto(orders=(1, 2), particles=16, rewards=name)
    for rewards in ([0.0, 1.0, 0.0, 1.0], [0.2, 0.9, 0.4, 0.7]):
        smc = learn_all(spec, rewards).smc
        assert smc.rewards[0] == model
        if model == BINARY:
            assert list(smc.history.reward[:4]) == [0.0, 1.0, 0.0, 1.0]


def assert_same_populations(a, b):
    """Assert that two samplers have the same particles, evidence and history."""
    for name in ("alive", "moves_due", "born", "first", "next", "seen", "evidence", "step_size"):
        np.testing.assert_array_equal(getattr(a.populations, name), getattr(b.populations, name), err_msg=name)
    np.testing.assert_array_equal(a.data, b.data)
    np.testing.assert_array_equal(a.history.arm, b.history.arm)
    np.testing.assert_array_equal(a.history.reward, b.history.reward)
    np.testing.assert_array_equal(a.draws, b.draws)


def test_third_value_gives_the_populations_of_continuous_rewards():
    # The history is learnt again. With the same random draws, nothing remains of the binary model.
    rewards = [0.0, 1.0, 1.0, 0.0, 1.0, 0.5]
    switched = learn_all(TINY, rewards, shared_draws=5)
    continuous = learn_all(larl.Auto(orders=(1, 2), particles=16, rewards="continuous"), rewards)
    assert_same_populations(switched.smc, continuous.smc)
    np.testing.assert_array_equal(switched.score, continuous.score)


@pytest.mark.parametrize(("low", "high"), [(2.0, 5.0), (-3.0, 0.0), (0.0, 100.0), (1.0, 1.5)])
def test_two_values_are_learnt_as_zero_and_one(low, high):
    # Two values are recognised at the third reward, 0 and 1 at the first; from then on the draws are the same.
    rng = np.random.default_rng(4)
    ones = np.concatenate([[0.0, 1.0, 1.0], (rng.random(60) < 0.6).astype(float)])
    plain, other = TINY.init(3), TINY.init(3)
    for t, one in enumerate(ones):
        if t == 2:
            plain.smc.draws[0] = other.smc.draws[0] = 0
            plain.smc.seen[0] = 0  # 0 and 1 are learnt again, too
        arms = [decide(state, int(policy_bits(3, 3, t))) for state in (plain, other)]
        arm = int(rng.integers(3)) if t < 3 else arms[0]
        assert t < 3 or arms[0] == arms[1], t
        learn(plain, arm, one)
        learn(other, arm, low + (high - low) * one)
        if t == 2:
            plain.smc.seen[0] = 3
            np.testing.assert_array_equal(plain.smc.data, other.smc.data)
    np.testing.assert_array_equal(plain.smc.data, other.smc.data)
    np.testing.assert_array_equal(plain.score, other.score)
    assert other.smc.rewards[0] == BINARY


@kernel
def bonus_of(mean, variance, level, alpha):
    return probability_bonus(mean, variance, level, alpha)


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 2.0])
def test_bonus_of_binary_rewards_is_added_to_the_log_odds(mean, alpha):
    variance, level = 0.01 * mean * (1.0 - mean), 0.3
    score = mean + bonus_of(mean, variance, level, alpha)
    sd = math.sqrt(variance / (mean * (1.0 - mean)) ** 2 + level)
    assert special.logit(score) - special.logit(mean) == pytest.approx(BINARY_FACTOR * alpha * sd)


@pytest.mark.parametrize("mean", [0.0, 1e-12, 0.5, 1.0 - 1e-12, 1.0])
def test_bonus_of_binary_rewards_stays_within_the_probabilities(mean):
    assert bonus_of(mean, 0.1, 1.0, 0.0) == 0.0
    for alpha in (0.5, 1e6, 1.7e308):
        assert 0.0 <= bonus_of(mean, 0.1, 1.0, alpha) <= 1.0 - mean


def test_posterior_of_allocations_does_not_depend_on_alpha() -> None:
    shares = []
    for alpha in (0.05, 0.5, 1.0):
        policy, draws = larl.Auto(alpha=alpha, orders=(1,), particles=16), np.random.default_rng(2)
        agent = larl.Agent(policy, 2, allocation="best")
        for t in range(60):
            arm = "01"[t % 2]
            agent.observe(agent.record(arm), float(draws.random() < (0.2, 0.3)[t % 2]))
        shares.append(agent.decide().probabilities["1"])
    assert shares == pytest.approx(shares[:1] * 3, abs=1e-6)
    assert 0.5 < shares[0] < 0.999
