"""Auto: its filters against the joint normal distribution, its populations against plain importance sampling."""

import math

import numpy as np
import pytest
import scipy.linalg
from scipy import stats

import larl
from larl._core.compile import kernel
from larl.policies.auto.layout import (
    AR_STATE,
    BINARY,
    CONTINUOUS,
    DAMPED_ROTATION,
    INDEPENDENT_AR1,
    STATIONARY_AR,
    ModelKind,
    coordinate_count,
    field_offsets,
)
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.particle_kalman import time_update
from larl.policies.auto.replay import RewardHistory, filter_step, replay_filter
from larl.policies.auto.soa import LANES
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

SMALL = larl.Auto(orders=(1, 2), particles=32)
FORMS = [
    *((p, AR_STATE) for p in (0, 1, 2, 5)),
    *((p, STATIONARY_AR) for p in (1, 2, 5)),
    (1, INDEPENDENT_AR1),
    (2, DAMPED_ROTATION),
]


@kernel
def compiled_steps(x, fields, kind, arms, rewards, inflation, seen, level, contexts):
    for row in range(0, x.shape[0], fields.end):
        errors, block = seen, x[row : row + fields.end]
        for t in range(arms.size):
            if arms[t] < 0:
                time_update(block, fields, kind, t + 1)
            else:
                errors += 1.0 if t > 0 else 0.0
                filter_step(block, fields, kind, t, arms[t], rewards[t], inflation[t], errors, 1.0, level, contexts, t)


def take_steps(x, fields, kind, arms, rewards, inflation, seen, level=(0.0, 0.0, 0.0), contexts=None):
    """Filter rewards with the particles of some blocks."""
    contexts = np.zeros((arms.size, 0)) if contexts is None else contexts
    compiled_steps(x, fields, kind, arms, rewards, inflation, seen, np.array(level[: kind.arms]), contexts)


@kernel
def replay_steps(x, fields, kind, history, born, first, end, seen, prior_square):
    replay_filter(x, fields, kind, history, born, first, end, seen, prior_square, 1.0, np.zeros(kind.arms))


@kernel
def set_parameters(x, fields, kind):
    for row in range(0, x.shape[0], fields.end):
        to_parameters(x[row : row + fields.end], fields, kind)


def random_block(kind: ModelKind, seed: int) -> np.ndarray:
    """Return a block of particles with random coordinates."""
    fields, rng = field_offsets(kind), np.random.default_rng(seed)
    x = np.zeros((fields.end, LANES))
    x[: fields.sign] = rng.normal(0.0, 0.6, size=(fields.sign, LANES))
    x[fields.sign : fields.phi] = rng.choice([-1.0, 1.0], size=(kind.arms, LANES))
    set_parameters(x, fields, kind)
    return x


def random_rewards(arms: int, steps: int, missing: list[int], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arms (−1 where the reward is missing), rewards minus the first one, and inflations."""
    rng = np.random.default_rng(seed)
    played, rewards, inflation = rng.integers(0, arms, steps), rng.normal(size=steps), np.ones(steps)
    played[missing] = -1
    inflation[[5, 8]] = 30.0, 4.0
    return played, rewards - rewards[0], inflation


def stationary_path(phi, variance, steps, columns):
    """Return z_0 … z_{steps−1} as linear functions of the start, which has this variance, and of unit shocks."""
    p = phi.size
    companion = np.vstack([phi, np.eye(p)[:-1]])
    start = scipy.linalg.solve_discrete_lyapunov(companion, np.outer(np.eye(p)[0], np.eye(p)[0]))
    path = np.zeros((p + steps - 1, columns))  # from z_{1−p} on
    path[p - 1 :: -1, :p] = np.linalg.cholesky(start * variance / start[0, 0])  # z_0, z_{−1}, …
    for t in range(p, p + steps - 1):
        path[t] = phi @ path[t - 1 : t - 1 - p if t > p else None : -1]
        path[t, t] += 1.0
    return path[p - 1 :]


def joint_distribution(x, kind, lane, arms, rewards, inflation, contexts=None):
    """Return the covariance of the rewards minus the first one, and the means of all arms at the next step."""
    contexts = np.zeros((arms.size + 1, 0)) if contexts is None else contexts
    fields, n, p, seen = field_offsets(kind), arms.size, kind.p, np.flatnonzero(arms >= 0)
    own, start, keep = x[fields.level_variance, lane], x[fields.start_variance, lane], x[fields.persistence, lane]
    beta, noise = (x[row : row + kind.arms, lane] for row in (fields.beta, fields.noise_variance))
    phi, kappa = x[fields.phi : fields.phi + p, lane], np.zeros(kind.arms)
    if kind.form == DAMPED_ROTATION:
        kappa = x[fields.kappa : fields.kappa + kind.arms, lane]
    u, v = np.zeros((2, n + 1, 2 * (p + n + 1)))  # the state as a linear function of start and shocks
    for t in range(n + 1):
        if kind.form == STATIONARY_AR:
            u[t] = stationary_path(phi, start, n + 1, u.shape[1])[t]
        elif kind.form == DAMPED_ROTATION:
            u[t, 2 * t] = v[t, 2 * t + 1] = math.sqrt(start) if t == 0 else 1.0
            if t > 0:
                u[t] += phi[0] * u[t - 1] - phi[1] * v[t - 1]
                v[t] += phi[1] * u[t - 1] + phi[0] * v[t - 1]
        elif kind.form == AR_STATE and p > 0:
            u[t, t] = math.sqrt(start) if t < p else 1.0
            for j in range(p if t >= p else 0):
                u[t] += phi[j] * u[t - 1 - j]
    means, y = [], rewards[seen[1:]]
    for arm in range(kind.arms):
        played = np.append(arms, arm)
        levels = own * (played[:, None] == played) * keep ** np.abs(np.subtract.outer(range(n + 1), range(n + 1)))
        shown = beta[played, None] * u + kappa[played, None] * v
        spread = x[fields.effect_variance : fields.effect_variance + kind.contexts, lane]
        effects = (contexts * spread) @ contexts.T * (1.0 + (played[:, None] == played))
        cov = levels + effects + shown @ shown.T
        cov[range(n), range(n)] += inflation * noise[arms]
        cov = cov[np.ix_(np.append(seen, n), np.append(seen, n))]
        to_first = np.hstack([-np.ones((seen.size, 1)), np.eye(seen.size)])  # differences, without the offset
        cov = to_first @ cov @ to_first.T
        means.append(cov[-1, :-1] @ np.linalg.solve(cov[:-1, :-1], y))
    return cov[:-1, :-1], np.array(means)


@pytest.mark.parametrize("missing", [[], [3, 4, 9]], ids=["", "missing"])
@pytest.mark.parametrize("length", [0, 2], ids=["", "context"])
@pytest.mark.parametrize(("p", "form"), FORMS)
def test_filters_equal_the_joint_normal_distribution(p, form, length, missing):
    kind = ModelKind(3, p, form, CONTINUOUS, length)
    fields, (arms, rewards, inflation) = field_offsets(kind), random_rewards(3, 17, missing, seed=1)
    x, contexts = random_block(kind, 2), np.random.default_rng(9).normal(size=(18, length))
    take_steps(x, fields, kind, arms, rewards, inflation, 0.0, contexts=contexts)
    y = rewards[np.flatnonzero(arms >= 0)[1:]]
    for lane in range(LANES):
        cov, means = joint_distribution(x, kind, lane, arms, rewards, inflation, contexts)
        assert x[fields.log_det, lane] == pytest.approx(np.linalg.slogdet(cov)[1], abs=1e-8)
        assert x[fields.squared_error, lane] == pytest.approx(y @ np.linalg.solve(cov, y), rel=1e-8)
        filtered, z = x[fields.mean : fields.mean + 3, lane].copy(), fields.mean + 3 * (1 + length)
        filtered += x[fields.mean + 3 : z, lane].reshape(3, length) @ contexts[17]
        if kind.p > 0:
            newest = 0 if kind.form == DAMPED_ROTATION else 17 % kind.p
            filtered += x[fields.beta : fields.beta + 3, lane] * x[z + newest, lane]
        if kind.form == DAMPED_ROTATION:
            filtered += x[fields.kappa : fields.kappa + 3, lane] * x[z + 1, lane]
        np.testing.assert_allclose(filtered, means, atol=1e-8)


def test_expected_levels_only_shift_the_rewards():
    level, kind = (0.0, 2.0, -0.5), ModelKind(3, 2, STATIONARY_AR, CONTINUOUS)
    fields, (arms, rewards, inflation) = field_offsets(kind), random_rewards(3, 17, [3], seed=1)
    plain, shifted = random_block(kind, 2), random_block(kind, 2)
    take_steps(plain, fields, kind, arms, rewards, inflation, 0.0)
    moved = rewards + np.array(level)[arms] - level[arms[0]]
    take_steps(shifted, fields, kind, arms, moved, inflation, 0.0, level)
    np.testing.assert_allclose(shifted[fields.log_lik], plain[fields.log_lik], rtol=1e-12)
    difference = shifted[fields.mean : fields.mean + 3] - plain[fields.mean : fields.mean + 3]
    np.testing.assert_allclose(difference, np.tile(np.array(level)[:, None] - level[arms[0]], LANES), atol=1e-12)


@pytest.mark.parametrize(("seen", "square"), [(0.0, 0.0), (2.0, 1.3)], ids=["flat prior of σ²", "prior of two errors"])
def test_log_likelihood_is_a_sum_of_student_t_log_densities(seen, square):
    # Populations start at different steps, so their log-likelihoods must include all constants.
    kind = ModelKind(3, 2, AR_STATE, CONTINUOUS)
    fields, (arms, rewards, inflation) = field_offsets(kind), random_rewards(3, 17, [3], seed=1)
    start, x = random_block(kind, 2), random_block(kind, 2)
    skipped = 0 if seen > 0.0 else 1  # with a flat prior of σ², the first error has no density
    cut = 1 + skipped
    for block, steps in ((start, cut), (x, 17)):
        block[fields.squared_error] = square
        take_steps(block, fields, kind, arms[:steps], rewards[:steps], inflation[:steps], seen)
    y = rewards[np.flatnonzero(arms >= 0)[1:]]
    for lane in range(LANES):
        cov, _ = joint_distribution(x, kind, lane, arms, rewards, inflation)
        factor = np.linalg.cholesky(cov)
        errors = np.linalg.solve(factor, y)
        before = square + np.append(0.0, np.cumsum(errors**2)[:-1])
        freedom = seen + np.arange(y.size)
        means = y - np.diag(factor) * errors
        expected = sum(
            stats.t.logpdf(y[i], freedom[i], means[i], factor[i, i] * math.sqrt(before[i] / freedom[i]))
            for i in range(skipped, y.size)
        )
        assert x[fields.log_lik, lane] - start[fields.log_lik, lane] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("missing", [[], [5, 6, 11, 12, 20]], ids=["", "missing"])
@pytest.mark.parametrize("model", [CONTINUOUS, BINARY], ids=["continuous", "binary"])
@pytest.mark.parametrize("length", [0, 2], ids=["", "context"])
@pytest.mark.parametrize(("p", "form"), FORMS)
def test_replaying_equals_stepping(p, form, length, model, missing):
    kind, born = ModelKind(2, p, form, model, length), 14
    fields, (arms, rewards, inflation) = field_offsets(kind), random_rewards(2, 30, missing, seed=3)
    if model == BINARY:
        rewards = (rewards > 0.0).astype(float)
    ring = (np.arange(30) + born) % 32  # the population starts at step 14 of a history of 32 steps
    contexts = np.random.default_rng(9).normal(size=(30, length))
    history = RewardHistory(np.full(32, -1), np.zeros(32), np.ones(32), np.zeros(32), np.zeros((32, length)))
    history.context[ring] = contexts
    history.arm[ring], history.reward[ring], history.inflation[ring] = arms, rewards, inflation
    square, seen = 1.3, 2.0 + np.sum(arms >= 0) - 1.0
    stepped, replayed, half, part = (random_block(kind, 4) for _ in range(4))
    for x, steps in ((stepped, 30), (half, 12)):
        x[fields.squared_error] = square
        take_steps(x, fields, kind, arms[:steps], rewards[:steps], inflation[:steps], 2.0, contexts=contexts)
    replay_steps(replayed, fields, kind, history, born, born, born + 30, seen, square)
    beliefs = slice(fields.mean, fields.window_start)
    part[fields.window_start : fields.log_lik_before] = half[beliefs]
    replay_steps(part, fields, kind, history, born, born + 12, born + 30, seen, square)
    for row in (beliefs, fields.log_lik_before, fields.log_lik):
        np.testing.assert_allclose(replayed[row], stepped[row], atol=1e-9)
        np.testing.assert_allclose(part[row], stepped[row], atol=1e-9)


def run_trial(spec, world, steps, seed=0, trial=0, shift=0.0, scale=1.0):
    """Return the State after some steps of a trial, and the arms that it chose."""
    state, simulator, chosen = spec.init(world.arms), Simulator(world, seed, trial), []
    for _ in range(steps):
        chosen.append(decide(state, simulator.bits))
        learn(state, chosen[-1], shift + scale * simulator.reward(chosen[-1]))
        simulator.advance(chosen[-1])
    return state, chosen


@pytest.mark.parametrize("model", [CONTINUOUS, BINARY], ids=["continuous", "binary"])
def test_populations_agree_with_importance_sampling_from_the_prior(model):
    # Only the filter, which other tests compare with exact distributions, is common to both.
    rng, n = np.random.default_rng(5), 25
    arms = rng.integers(0, 2, n)
    z = np.zeros(n)
    for t in range(1, n):
        z[t] = 0.8 * z[t - 1] + rng.normal()
    rewards = 3.0 + np.where(arms == 0, -1.0, 1.0) * z + 0.7 * rng.normal(size=n)
    if model == BINARY:
        rewards = (rewards > 3.0).astype(float)
    state = larl.Auto(orders=(1, 2), particles=2560).init(2)
    for arm, reward in zip(arms, rewards, strict=True):
        learn(state, int(arm), float(reward))
    pops, priors = state.smc.populations, state.smc.priors
    sds = np.diagonal(priors.factor, axis1=2, axis2=3)
    assert pops.alive.all()
    for population in range(5):  # constant arms, independent AR(1), damped rotation, p = 1, p = 2
        kind = ModelKind(2, int(pops.order[population]), int(pops.form[population]), model)
        fields, size, blocks = field_offsets(kind), coordinate_count(kind), 6000
        mean, sd = (each[model, population, :size] for each in (priors.mean, sds))
        data = np.zeros((blocks, fields.end, LANES))
        data[:, :size] = mean[:, None] + sd[:, None] * rng.normal(size=(blocks, size, LANES))
        data[:, fields.sign : fields.phi] = rng.choice([-1.0, 1.0], size=(blocks, 2, LANES))
        flat = data.reshape(-1, LANES)
        set_parameters(flat, fields, kind)
        first = rewards[0] if model == CONTINUOUS else 0.0
        take_steps(flat, fields, kind, arms, rewards - first, np.ones(n), 0.0)
        logs = data[:, fields.log_lik].ravel()
        share = np.exp(logs - logs.max())
        evidence = logs.max() + math.log(share.mean())
        share /= share.sum()
        top, height = pops.top[population], fields.end * pops.blocks[population]
        owned = state.smc.data[top : top + height].reshape(-1, fields.end, LANES)
        weights = np.exp(owned[:, fields.log_weight].ravel() - pops.evidence[population])
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)
        # After several resamplings, about a quarter of the particles count as independent.
        few, many = weights.size / 4.0, 1.0 / np.sum(share**2)
        found = pops.evidence[population] - priors.log_weight[model, population]
        assert abs(found - evidence) < 4.0 * math.sqrt(2.0 / few + 2.0 / many)
        for i in [*range(kind.p), kind.p + 2, kind.p + 3]:
            exact, spread = share @ data[:, i].ravel(), 0.0
            spread = math.sqrt(share @ (data[:, i].ravel() - exact) ** 2)
            bound = 4.0 * spread * math.sqrt(1.0 / few + 1.0 / many)
            assert abs(weights @ owned[:, i].ravel() - exact) < bound, (population, i)


@pytest.mark.parametrize(("shift", "scale"), [(1000.0, 1.0), (-1000.0, 1.0), (0.0, 1e-3), (0.0, 1e3), (512.0, 0.25)])
def test_decisions_do_not_depend_on_offset_and_unit(shift, scale):
    _, plain = run_trial(SMALL, THREE_ARMS, 120)
    _, other = run_trial(SMALL, THREE_ARMS, 120, shift=shift, scale=scale)
    assert plain == other


def test_huge_orders_are_refused_by_name():
    with pytest.raises(larl.InvalidValue, match=r"Auto: orders\[1\] = 1001 .*from 1 to 1000"):
        larl.Auto(orders=(1, 1001))
