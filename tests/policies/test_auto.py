"""Auto: its filters against the joint normal distribution, its populations against plain importance sampling."""

import math

import numba
import numpy as np
import pytest

import larl
from larl import worlds
from larl.policies.auto import policy as auto
from larl.policies.auto.layout import AR_STATE, DAMPED_ROTATION, INDEPENDENT_AR1, FieldOffsets, ModelKind, field_offsets
from larl.policies.auto.moves import systematic_resample, to_parameters_all
from larl.policies.auto.particle_kalman import RewardHistory, filter_step, replay_filter, time_update
from larl.policies.auto.proposal import fit_proposal, proposal_to_prior
from larl.policies.auto.soa import LANES
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

KINDS = [*(ModelKind(p, AR_STATE) for p in (0, 1, 2, 5)), ModelKind(1, INDEPENDENT_AR1), ModelKind(2, DAMPED_ROTATION)]


@numba.njit
def take_steps(x, fields, kind, arms, rewards):
    seen = 0
    for t in range(arms.size):
        if arms[t] < 0:
            time_update(x, fields, kind, t + 1)
        else:
            filter_step(x, fields, kind, t, arms[t], rewards[t], seen, 1.0)
            seen += 1


@numba.njit
def replay_steps(x, fields, kind, arms, rewards, first, later):
    replay_filter(x, fields, kind, RewardHistory(arms, rewards), first, later, arms.size, np.sum(arms >= 0), 1.0)


def random_block(fields: FieldOffsets, kind: ModelKind, seed: int) -> np.ndarray:
    """Return a block of particles drawn from the prior."""
    rng = np.random.default_rng(seed)
    x = np.zeros((1, fields.end, LANES))
    x[0, : fields.sign] = rng.normal(0.0, 0.6, size=(fields.sign, LANES))
    x[0, fields.sign : fields.phi] = rng.choice([-1.0, 1.0], size=(fields.arms, LANES))
    to_parameters_all(x, np.zeros(1, dtype=np.int64), fields, np.array([kind.p]), np.array([kind.form]))
    return x[0]


def joint_distribution(x, fields, kind, lane, arms, rewards):
    """Return log det S and yᵀS⁻¹y of the rewards minus the first one, and the means of all arms at the next step."""
    n, p, seen = arms.size, kind.p, np.flatnonzero(arms >= 0)
    beta, noise = (
        x[fields.beta : fields.beta + fields.arms, lane],
        x[fields.noise_variance : fields.noise_variance + fields.arms, lane],
    )
    own, start, keep = x[fields.level_variance, lane], x[fields.start_variance, lane], x[fields.persistence, lane]
    phi, kappa = x[fields.phi : fields.phi + p, lane], x[fields.kappa : fields.kappa + fields.arms, lane]
    u, v = np.zeros((2, n + 1, 2 * (p + n + 1)))  # the state as a linear function of start and shocks
    for t in range(n + 1):
        if kind.form == DAMPED_ROTATION:
            u[t, 2 * t] = v[t, 2 * t + 1] = math.sqrt(start) if t == 0 else 1.0
            if t > 0:
                u[t] += phi[0] * u[t - 1] - phi[1] * v[t - 1]
                v[t] += phi[1] * u[t - 1] + phi[0] * v[t - 1]
        elif kind.form == AR_STATE and p > 0:
            u[t, t] = math.sqrt(start) if t < p else 1.0
            for j in range(p if t >= p else 0):
                u[t] += phi[j] * u[t - 1 - j]
    means = []
    for arm in range(fields.arms):
        played = np.append(arms, arm)
        levels = own * (played[:, None] == played) * keep ** np.abs(np.subtract.outer(range(n + 1), range(n + 1)))
        shown = beta[played, None] * u + kappa[played, None] * v
        cov = levels + shown @ shown.T
        cov[range(n), range(n)] += noise[arms]
        cov = cov[np.ix_(np.append(seen, n), np.append(seen, n))]
        differences = np.hstack(
            [-np.ones((seen.size, 1)), np.eye(seen.size)]
        )  # to the first reward: removes the offset
        cov = differences @ cov @ differences.T
        y = rewards[seen[1:]] - rewards[0]
        means.append(cov[-1, :-1] @ np.linalg.solve(cov[:-1, :-1], y))
    cov = cov[:-1, :-1]
    return np.linalg.slogdet(cov)[1], y @ np.linalg.solve(cov, y), np.array(means)


@pytest.mark.parametrize("missing", [[], [3, 4, 9]], ids=["", "missing"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_filters_equal_the_joint_normal_distribution(kind, missing):
    fields, rng = field_offsets(3, 5), np.random.default_rng(1)
    arms, rewards = rng.integers(0, 3, 17), rng.normal(size=17)
    arms[missing] = -1
    x = random_block(fields, kind, 2)
    take_steps(x, fields, kind, arms, rewards - rewards[0])
    for lane in range(LANES):
        log_det, square, means = joint_distribution(x, fields, kind, lane, arms, rewards)
        assert x[fields.log_det, lane] == pytest.approx(log_det, abs=1e-8)
        assert x[fields.squared_error, lane] == pytest.approx(square, rel=1e-8)
        assert x[fields.log_lik, lane] == pytest.approx(
            -0.5 * (log_det + (16 - len(missing)) * math.log(square)), rel=1e-8
        )
        filtered = x[fields.mean : fields.mean + 3, lane].copy()
        if kind.p > 0:
            newest = 0 if kind.form == DAMPED_ROTATION else 17 % kind.p
            filtered += x[fields.beta : fields.beta + 3, lane] * x[fields.mean + 3 + newest, lane]
        if kind.form == DAMPED_ROTATION:
            filtered += x[fields.kappa : fields.kappa + 3, lane] * x[fields.mean + 4, lane]
        np.testing.assert_allclose(filtered, means, atol=1e-8)


@pytest.mark.parametrize("missing", [[], [5, 6, 11, 12, 20]], ids=["", "missing"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_replaying_equals_stepping(kind, missing):
    fields, rng = field_offsets(2, 5), np.random.default_rng(3)
    arms, rewards = rng.integers(0, 2, 30), rng.normal(size=30)
    arms[missing] = -1
    rewards -= rewards[0]
    stepped, replayed, part = (random_block(fields, kind, 4) for _ in range(3))
    take_steps(stepped, fields, kind, arms, rewards)
    replay_steps(replayed, fields, kind, arms, rewards, 0, 12)
    beliefs = slice(fields.mean, fields.window_start)
    for row in (beliefs, fields.log_lik_before, fields.log_lik):
        np.testing.assert_allclose(replayed[row], stepped[row], atol=1e-9)
    half = random_block(fields, kind, 4)
    take_steps(half, fields, kind, arms[:12], rewards[:12])
    np.testing.assert_allclose(replayed[fields.next_window_start : fields.log_lik_before], half[beliefs], atol=1e-9)
    part[fields.window_start : fields.next_window_start] = half[beliefs]
    replay_steps(part, fields, kind, arms, rewards, 12, -1)
    np.testing.assert_allclose(part[beliefs], stepped[beliefs], atol=1e-9)


def run_trial(spec, world, steps, seed=0, trial=0, shift=0.0, scale=1.0):
    """Return the State after some steps of a trial, and the arms that it chose."""
    state, simulator, chosen = spec.init(world.arms), Simulator(world, seed, trial), []
    for _ in range(steps):
        chosen.append(decide(state, simulator.bits))
        learn(state, chosen[-1], shift + scale * simulator.reward(chosen[-1]))
        simulator.advance(chosen[-1])
    return state, chosen


def test_populations_agree_with_importance_sampling_from_the_prior():
    # Only the filter, which the tests above compare with the joint distribution, is common to both.
    rng, n = np.random.default_rng(5), 25
    arms = rng.integers(0, 2, n)
    z = np.zeros(n)
    for t in range(1, n):
        z[t] = 0.8 * z[t - 1] + rng.normal()
    rewards = 3.0 + np.where(arms == 0, -1.0, 1.0) * z + 0.7 * rng.normal(size=n)
    spec = larl.Auto(particles=2560)  # with the default 160, the signs of the arms are uncertain
    auto_state = spec.init(2)
    for arm, reward in zip(arms, rewards, strict=True):
        learn(auto_state, int(arm), float(reward))
    state = auto_state.smc
    for population in (1, 2, 3, 4):  # independent AR(1), damped rotation, p = 1, p = 2
        kind, _, weight, _ = auto.population_priors(2, spec.orders, spec.particles)[population]
        p, fresh, blocks, fields = kind.p, larl.Auto().init(2).smc, 6000, state.fields
        size = p + 2 + {AR_STATE: 4, INDEPENDENT_AR1: 5, DAMPED_ROTATION: 6}[kind.form]
        mean, sd = (
            fresh.populations.mean[population, :size],
            np.diag(fresh.populations.precision[population])[:size] ** -0.5,
        )
        data = np.zeros((blocks, fields.end, LANES))
        data[:, :size] = mean[:, None] + sd[:, None] * rng.normal(size=(blocks, size, LANES))
        data[:, fields.sign : fields.phi] = rng.choice([-1.0, 1.0], size=(blocks, 2, LANES))
        to_parameters_all(data, np.zeros(blocks, dtype=np.int64), fields, np.array([p]), np.array([kind.form]))
        for x in data:
            take_steps(x, fields, kind, arms, rewards - rewards[0])
        logs = data[:, fields.log_lik].ravel()
        share = np.exp(logs - logs.max())
        evidence = logs.max() + math.log(share.mean())
        share /= share.sum()
        owned = state.data[state.owner == population]
        weights = np.exp(owned[:, fields.log_weight].ravel() - state.populations.evidence[population])
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)
        # After several resamplings, about a quarter of the particles count as independent.
        few, many = weights.size / 4.0, 1.0 / np.sum(share**2)
        assert abs(state.populations.evidence[population] - weight - evidence) < 4.0 * math.sqrt(2.0 / few + 2.0 / many)
        for i in [*range(p), p + 2, p + 3]:
            exact, spread = share @ data[:, i].ravel(), 0.0
            spread = math.sqrt(share @ (data[:, i].ravel() - exact) ** 2)
            bound = 4.0 * spread * math.sqrt(1.0 / few + 1.0 / many)
            assert abs(weights @ owned[:, i].ravel() - exact) < bound, (population, i)


@numba.njit
def resampled(data, owner, population, fields, evidence, u):
    systematic_resample(data, owner, population, fields, evidence, u)


def test_resampling_copies_in_proportion_to_weight():
    fields, rng = field_offsets(2, 1), np.random.default_rng(6)
    owner = np.array([1, 0, 1, 0])
    data = rng.normal(size=(4, fields.end, LANES))
    before, weights = data.copy(), rng.exponential(size=(2, LANES)) ** 2
    data[owner == 1, fields.log_weight] = np.log(weights) - 3.0
    evidence = math.log(weights.sum()) - 3.0
    resampled(data, owner, 1, fields, evidence, 0.37)
    np.testing.assert_array_equal(data[owner == 0], before[owner == 0])
    marks = before[owner == 1][:, 0].ravel()
    copies = np.array([(data[owner == 1][:, 0] == mark).sum() for mark in marks])
    assert copies.sum() == 2 * LANES
    assert np.abs(copies - 2 * LANES * (weights / weights.sum()).ravel()).max() < 1.0
    np.testing.assert_allclose(data[owner == 1, fields.log_weight], evidence - math.log(2 * LANES))


@numba.njit
def fitted(data, owner, fields, size, normal, mean, precision, work):
    fit_proposal(data, owner, 0, fields, size, 0.0, normal)
    proposal_to_prior(normal, size, mean, precision, work)


def test_prior_has_the_moments_of_the_population():
    fields, rng, size = field_offsets(2, 3), np.random.default_rng(7), 6
    data = rng.normal(size=(40, fields.end, LANES))
    data[:, 1] += data[:, 0]
    data[:, fields.log_weight] = -math.log(40 * LANES)
    state = larl.Auto().init(2).smc
    mean, precision = np.zeros(size), np.zeros((size, size))
    fitted(data, np.zeros(40, dtype=np.int64), fields, size, state.proposal, mean, precision, np.zeros(size))
    theta = np.moveaxis(data[:, :size], 1, 0).reshape(size, -1)
    cov = np.cov(theta, ddof=0)
    cov = np.where(np.eye(size) > 0, cov + 1e-6, 0.9 * cov)
    np.testing.assert_allclose(mean, theta.mean(axis=1), atol=1e-10)
    np.testing.assert_allclose(precision @ cov, np.eye(size), atol=1e-9)


@pytest.mark.parametrize(("shift", "scale"), [(1000.0, 1.0), (-1000.0, 1.0), (0.0, 1e-3), (0.0, 1e3), (512.0, 0.25)])
def test_decisions_do_not_depend_on_offset_and_unit(shift, scale):
    _, plain = run_trial(larl.Auto(), THREE_ARMS, 120)
    _, other = run_trial(larl.Auto(), THREE_ARMS, 120, shift=shift, scale=scale)
    assert plain == other


def test_all_arms_are_played_while_rewards_are_equal():
    state = larl.Auto().init(3)
    chosen = set()
    for t in range(30):
        arm = decide(state, int(larl._core.random.policy_bits(1, 1, t)))
        chosen.add(arm)
        learn(state, arm, 1.0)
    assert chosen == {0, 1, 2}
    learn(state, 0, 2.0)
    assert np.isfinite(state.score).all()


def test_extreme_rewards_leave_finite_scores():
    rng = np.random.default_rng(8)
    state = larl.Auto(memory=20).init(2)
    for t in range(90):
        reward = [0.0, 1e6, -1e-6, 1e6 * rng.standard_cauchy()][t % 4]
        learn(state, int(rng.integers(2)), reward)
        assert np.isfinite(state.score).all()


def test_memory_limits_the_history_and_has_no_effect_before_it_is_full():
    world = worlds.paper(1)
    full, short = larl.Auto(memory=200), larl.Auto(memory=40)
    _, chosen = run_trial(full, world, 80)
    _, other = run_trial(short, world, 80)
    assert chosen == other  # the first 2 × 40 steps are all replayed
    state, _ = run_trial(short, world, 200)
    assert state.smc.history.arm.size == 80
    assert list(state.smc.window) == [160, 200]


def test_relabelling_arms_does_not_change_mean_regret():
    # The same noise with the arms swapped. Particles are drawn by arm number, so single choices may differ.
    trials, world = 30, larl.LatentAR(gammas=(0.8,), beta=(-1.0, 0.6), mu=(0.3, 0.0))
    swapped = larl.LatentAR(gammas=(0.8,), beta=(0.6, -1.0), mu=(0.0, 0.3))
    totals = [
        larl.compare({"Auto": larl.Auto()}, each, horizon=60, trials=trials, seed=9).total().values.ravel()
        for each in (world, swapped)
    ]
    difference = totals[0] - totals[1]
    assert abs(difference.mean()) < 4.0 * difference.std(ddof=1) / math.sqrt(trials)


def test_regret_is_between_larl_bic_and_kalman_oracle():
    trials = 30
    policies = {"Auto": larl.Auto(), "BIC": larl.LARLBIC(40), "Kalman": larl.KalmanOracle()}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=trials, seed=10).total("k")
    auto_regret, bic, kalman = (total.sel(policy=name).values for name in policies)
    closed = bic - auto_regret - 0.6 * (bic - kalman)  # over 60% of the gap
    assert closed.mean() > 4.0 * closed.std(ddof=1) / math.sqrt(trials)
    assert (auto_regret - kalman).mean() > 0.0


def test_regret_with_stationary_arms_is_not_above_ucb():
    trials = 30
    world = larl.LatentAR(gammas=(0.0,), beta=(0.0, 0.0, 0.0), mu=(0.0, 0.5, 1.0), noise="common")
    total = larl.compare({"Auto": larl.Auto(), "UCB": larl.UCB()}, world, horizon=200, trials=trials, seed=11).total()
    difference = (total.sel(policy="Auto") - total.sel(policy="UCB")).values
    assert difference.mean() < 3.0 * difference.std(ddof=1) / math.sqrt(trials)
