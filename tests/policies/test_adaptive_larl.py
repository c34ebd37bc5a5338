"""AdaptiveLARL against direct Bayesian regressions on the same rows; invariance to units; regret."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import larl
from larl import worlds
from larl._core.compile import kernel
from larl.policies.adaptive_larl import members as module
from larl.policies.adaptive_larl.ensemble import (
    NEGLIGIBLE_LOG_WEIGHT,
    PRIOR_ROWS,
    PRIOR_SHARE,
    mixture,
    noise_variance,
    predict_member,
    update_members,
)
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn


@kernel
def beliefs(state, member, arm):
    mean, leverage = predict_member(state, member, arm)
    return mean, leverage, noise_variance(state, member)


@kernel
def learn_only(state, arm, reward):
    update_members(state, arm, reward)


@kernel
def mixed(state, arm):
    return mixture(state, arm)


def row_of(state, member, arm):
    """Return the dense row of a member for `arm`; an untied member has one block per arm, with common noise."""
    s, arms, untied = state.order[member], state.arms, state.sign_pattern[member] == 0
    size = 1 + s * arms if untied else arms + s
    row = np.zeros((arms, size) if untied else (1, size))
    block, first = (arm, 0) if untied else (0, arm)
    row[block, first] = 1.0
    row[block, state.context_index[0 if untied else 1, :s]] = state.value[member, :s]
    return row.ravel()


def penalties(state, member):
    s, arms = state.order[member], state.arms
    of_lag, of_intercept = state.penalties[state.penalty_row[member]]
    lags = of_lag * np.arange(1, s + 1) * state.unit[0]
    if state.sign_pattern[member] == 0:
        return np.tile(np.append(of_intercept, np.repeat(lags, arms)), arms)
    return np.append(np.full(arms, of_intercept), lags)


class ReferenceMember:
    """One member as a Bayesian linear regression that is solved directly on all its rows."""

    def __init__(self, state, member):
        self.state, self.member, self.x, self.y = state, member, [], []
        self.pattern, self.order = state.sign_pattern[member], state.order[member]

    def factors(self):
        return self.state.sign[self.pattern] * self.state.arm_scale

    def target(self, arm, reward):
        return self.factors()[arm] * (reward - self.state.first_reward[0] - self.state.centre[self.member, 0])

    def learn(self, arm, reward):
        self.x.append(row_of(self.state, self.member, arm))
        self.y.append(self.target(arm, reward))
        self.centre = self.state.centre[self.member, 0]

    def shift_targets(self):
        """Shift the y of every past row after c has changed; call it after an update."""
        by = (self.state.centre[self.member, 0] - self.centre) * self.factors() if self.x else 0.0
        size = 1 + self.order * self.state.arms
        intercepts = slice(0, None, size) if self.pattern == 0 else slice(0, self.state.arms)
        self.y = [y - np.sum(x[intercepts] * by) for x, y in zip(self.x, self.y, strict=True)]

    def posterior(self):
        penalty, unit = penalties(self.state, self.member), self.state.unit[0]
        x, y = np.array(self.x).reshape(-1, penalty.size), np.array(self.y)
        precision = np.diag(penalty) + x.T @ x
        theta = np.linalg.solve(precision, x.T @ y)
        loss, degrees = np.sum((y - x @ theta) ** 2) + penalty @ theta**2, PRIOR_ROWS + y.size
        return theta, precision, (PRIOR_ROWS * PRIOR_SHARE * unit + loss) / degrees, degrees


def play(steps, seed=3, world=THREE_ARMS):
    """Yield random arms and their rewards."""
    simulator, rng = larl.Simulator(world, seed, 0), np.random.default_rng(seed)
    for _ in range(steps):
        arm = int(rng.integers(world.arms))
        yield arm, simulator.reward(arm)
        simulator.advance()


@pytest.mark.parametrize("s_max", [0, 3])
def test_predictions_and_weights_equal_direct_regressions(s_max):
    state, units = larl.AdaptiveLARL(s_max).init(3), set()
    references, weight = [ReferenceMember(state, member) for member in range(state.loss.size)], np.exp(state.log_weight)
    falling = replace(THREE_ARMS, start=larl.Normal(0.0, 10.0))
    for step, (arm, reward) in enumerate(play(70, world=falling)):
        t = int(state.reward_moments[3, 0])
        if step % 7 == 5:
            learn(state, arm, math.nan)  # a missing lag: the references see it in the values
            assert np.all(state.value[:, :1] == 0.0)
            continue
        if t == 0:
            state.first_reward[0] = reward  # as the update does
        units.add(state.unit[0])
        density = np.full(weight.size, np.nan)
        for reference in references:
            if reference.order > t:
                continue
            if state.unit[0] > 0.0:
                theta, precision, variance, degrees = reference.posterior()
                for each in range(3):
                    x = row_of(state, reference.member, each)
                    leverage = x @ np.linalg.solve(precision, x)
                    assert beliefs(state, reference.member, each) == pytest.approx((x @ theta, leverage, variance))
                    if each == arm:
                        y, scale = reference.target(arm, reward), np.sqrt(variance * (1.0 + leverage))
                        density[reference.member] = stats.t.pdf(y, degrees, x @ theta, scale)
            reference.learn(arm, reward)
        if state.unit[0] > 0.0:
            awake = ~np.isnan(density)
            density[~awake] = (weight[awake] @ density[awake]) / weight[awake].sum()
            weight *= density
        learn(state, arm, reward)
        for reference in references:
            reference.shift_targets()
        assert np.exp(state.log_weight) == pytest.approx(weight / weight[state.order <= t].max(), rel=1e-7)
    assert len(units) > 2  # the unit has followed the rewards' variance


@pytest.mark.parametrize("s_max", [0, 2])
def test_evidence_is_a_multivariate_t_density(s_max):
    # While the centre is constant, the product of one-step densities is the joint density of the rewards.
    state, rng = larl.AdaptiveLARL(s_max).init(3), np.random.default_rng(1)
    references = [ReferenceMember(state, member) for member in range(state.loss.size)]
    for t, (arm, reward) in enumerate(play(30)):
        if t == 0:
            state.first_reward[0] = reward
        for reference in (each for each in references if each.order <= t):
            reference.learn(arm, reward)
        learn(state, arm, reward)
        for reference in references:
            reference.shift_targets()
    before, posteriors, rows = state.log_weight.copy(), [reference.posterior() for reference in references], []
    for _ in range(8):
        arm, reward = int(rng.integers(3)), float(rng.normal())
        state.value[:] = rng.normal(size=state.value.shape)
        rows.append(
            [(row_of(state, each.member, arm), each.target(arm, reward + state.first_reward[0])) for each in references]
        )
        learn_only(state, arm, reward)
    joint = []
    for member, (theta, precision, variance, degrees) in enumerate(posteriors):
        x, y = (np.array([row[member][i] for row in rows]) for i in (0, 1))
        shape = variance * (np.eye(y.size) + x @ np.linalg.solve(precision, x.T))
        joint.append(stats.multivariate_t(x @ theta, shape, degrees).logpdf(y))
    gained = state.log_weight - before
    assert gained - gained[0] == pytest.approx(np.array(joint) - joint[0], abs=1e-7)


def test_centre_without_lags_is_a_time_weighted_mean():
    state, seen = larl.AdaptiveLARL(0).init(3), []
    assert set(state.order) == {0}
    for arm, reward in play(40):
        learn(state, arm, reward)
        seen.append(reward)
        time = np.arange(1, len(seen) + 1)
        assert state.centre[:, 0] + seen[0] == pytest.approx(np.full(state.loss.size, time @ seen / time.sum()))


def test_mixture_variance_contains_uncertainty_and_disagreement():
    state = larl.AdaptiveLARL(2).init(3)
    for arm, reward in play(30):
        learn(state, arm, reward)
    weight = np.exp(state.log_weight) * (state.log_weight > NEGLIGIBLE_LOG_WEIGHT)
    weight /= weight.sum()
    for arm in range(3):
        means, variances = [], []
        for member in range(state.loss.size):
            mean, leverage, variance = beliefs(state, member, arm)
            f = state.sign[state.sign_pattern[member], arm] * state.arm_scale[arm]
            means.append(state.centre[member, 0] + mean / f)
            variances.append(variance * leverage / f**2)
        centre = weight @ means
        expected = centre, weight @ (np.array(variances) + (np.array(means) - centre) ** 2)
        assert mixed(state, arm) == pytest.approx(expected)


def decisions(rewards, change):
    """Return the decisions and the final State for a table of rewards (time, arm) that are transformed by `change`."""
    state, chosen = larl.AdaptiveLARL().init(rewards.shape[1]), []
    for t, row in enumerate(rewards):
        chosen.append(decide(state, (t * 7919 + 13) * 2**40))
        learn(state, chosen[-1], float(change(row[chosen[-1]])))
    return chosen, state


def table(seed, steps=150, arms=3):
    """Return drifting rewards of all arms, in multiples of 2⁻²⁰ so that an offset loses no digit."""
    rng = np.random.default_rng(seed)
    z = np.convolve(rng.normal(size=steps + 30), 0.8 ** np.arange(30), "valid")[:steps]
    rewards = np.outer(z, np.linspace(-1.0, 1.5, arms)) + rng.normal(size=(steps, arms))
    return np.round(rewards * 2**20) / 2**20


@pytest.mark.parametrize("power", [-40, -3, 1, 30])
def test_power_of_two_factor_changes_no_bit(power):
    plain, state = decisions(table(0), lambda r: r)
    scaled, other = decisions(table(0), lambda r: r * 2.0**power)
    assert plain == scaled
    assert np.array_equal(state.log_weight, other.log_weight)


@pytest.mark.parametrize("change", [lambda r: r + 1000.0, lambda r: r - 1000.0])
def test_offset_changes_no_bit(change):
    plain, state = decisions(table(1), lambda r: r)
    moved, other = decisions(table(1), change)
    assert plain == moved
    assert np.array_equal(state.log_weight, other.log_weight)


@pytest.mark.parametrize("change", [lambda r: r * 1e-3, lambda r: r * 1e3, lambda r: 0.1 * r - 1000.0])
def test_units_change_only_rounding(change):
    plain, state = decisions(table(2), lambda r: r)
    scaled, other = decisions(table(2), change)
    assert plain == scaled
    assert other.log_weight == pytest.approx(state.log_weight, abs=1e-6)


def test_equal_rewards_leave_choices_random_and_finite():
    state = larl.AdaptiveLARL().init(2)
    for t in range(50):
        learn(state, t % 2, 3.0)
    assert {decide(state, seed) for seed in (0, 2**64 - 1)} == {0, 1}
    for t in range(50):
        learn(state, t % 2, 3.0 + t % 2)
    assert decide(state, 0) == 1
    assert np.isfinite(mixed(state, 0)).all()


def test_many_arms_have_no_tied_members():
    state = larl.AdaptiveLARL(2).init(module.MAX_TIED_ARMS + 1)
    assert state.tied.theta.shape[0] == 0
    for arm, reward in play(60, world=worlds.random(2, module.MAX_TIED_ARMS + 1, 0)):
        learn(state, arm, reward)
    assert 0 <= decide(state, 0) <= module.MAX_TIED_ARMS


def test_regret_is_below_larl_bic_and_ucb():
    # 150 trials on the same random numbers; the mean difference must exceed 5 standard errors.
    policies = {"it": larl.AdaptiveLARL(), "BIC": larl.LARLBIC(40), "UCB": larl.UCB()}
    for world in (worlds.paper(1), replace(worlds.paper(5), start="stationary")):
        total = larl.compare(policies, world, horizon=200, trials=150, seed=8).total(skip="k")
        for name in ("BIC", "UCB"):
            saved = (total.sel(policy=name) - total.sel(policy="it")).values
            assert saved.mean() > 5 * saved.std(ddof=1) / np.sqrt(saved.size)
