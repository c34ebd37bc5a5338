"""Auto: its filters against the joint normal law written out, its populations against plain importance sampling."""

import math

import numba
import numpy as np
import pytest

import larl
from larl import worlds
from larl.policies.auto import policy as auto
from larl.policies.auto.layout import LATENT, TURNING, WANDERING, Kind, Rows, rows_of
from larl.policies.auto.moves import derive_all, resample
from larl.policies.auto.particle_kalman import History, forward, replay, step
from larl.policies.auto.proposal import become_prior, fit
from larl.policies.auto.soa import LANES
from larl.worlds import Simulator
from tests.conftest import THREE_ARMS
from tests.stepping import decide, learn

KINDS = [Kind(0, LATENT), Kind(1, LATENT), Kind(2, LATENT), Kind(5, LATENT), Kind(1, WANDERING), Kind(2, TURNING)]


@numba.njit
def take_steps(x, rows, kind, arms, rewards):
    seen = 0
    for t in range(arms.size):
        if arms[t] < 0:
            forward(x, rows, kind, t + 1)
        else:
            step(x, rows, kind, t, arms[t], rewards[t], seen, 1.0)
            seen += 1


@numba.njit
def take_again(x, rows, kind, arms, rewards, first, later):
    replay(x, rows, kind, History(arms, rewards), first, later, arms.size, np.sum(arms >= 0), 1.0)


def some_block(rows: Rows, kind: Kind, seed: int) -> np.ndarray:
    """A block of particles drawn from the prior."""
    rng = np.random.default_rng(seed)
    x = np.zeros((1, rows.end, LANES))
    x[0, : rows.sign] = rng.normal(0.0, 0.6, size=(rows.sign, LANES))
    x[0, rows.sign : rows.phi] = rng.choice([-1.0, 1.0], size=(rows.arms, LANES))
    derive_all(x, np.zeros(1, dtype=np.int64), rows, np.array([kind.p]), np.array([kind.form]))
    return x[0]


def written_out(x, rows, kind, lane, arms, rewards):
    """log det S and yᵀS⁻¹y of the rewards counted from the first, and the means of all arms at the next step."""
    n, p, seen = arms.size, kind.p, np.flatnonzero(arms >= 0)
    beta, noise = x[rows.beta : rows.beta + rows.arms, lane], x[rows.noise : rows.noise + rows.arms, lane]
    own, start, keep = x[rows.own, lane], x[rows.start, lane], x[rows.keep, lane]
    phi, kappa = x[rows.phi : rows.phi + p, lane], x[rows.kappa : rows.kappa + rows.arms, lane]
    u, v = np.zeros((2, n + 1, 2 * (p + n + 1)))  # the state in terms of the start and the shocks
    for t in range(n + 1):
        if kind.form == TURNING:
            u[t, 2 * t] = v[t, 2 * t + 1] = math.sqrt(start) if t == 0 else 1.0
            if t > 0:
                u[t] += phi[0] * u[t - 1] - phi[1] * v[t - 1]
                v[t] += phi[1] * u[t - 1] + phi[0] * v[t - 1]
        elif kind.form == LATENT and p > 0:
            u[t, t] = math.sqrt(start) if t < p else 1.0
            for j in range(p if t >= p else 0):
                u[t] += phi[j] * u[t - 1 - j]
    means = []
    for arm in range(rows.arms):
        played = np.append(arms, arm)
        levels = own * (played[:, None] == played) * keep ** np.abs(np.subtract.outer(range(n + 1), range(n + 1)))
        shown = beta[played, None] * u + kappa[played, None] * v
        cov = levels + shown @ shown.T
        cov[range(n), range(n)] += noise[arms]
        cov = cov[np.ix_(np.append(seen, n), np.append(seen, n))]
        apart = np.hstack([-np.ones((seen.size, 1)), np.eye(seen.size)])  # from the first reward: the offset is gone
        cov = apart @ cov @ apart.T
        y = rewards[seen[1:]] - rewards[0]
        means.append(cov[-1, :-1] @ np.linalg.solve(cov[:-1, :-1], y))
    cov = cov[:-1, :-1]
    return np.linalg.slogdet(cov)[1], y @ np.linalg.solve(cov, y), np.array(means)


@pytest.mark.parametrize("missing", [[], [3, 4, 9]], ids=["", "missing"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_filters_are_the_joint_law_written_out(kind, missing):
    rows, rng = rows_of(3, 5), np.random.default_rng(1)
    arms, rewards = rng.integers(0, 3, 17), rng.normal(size=17)
    arms[missing] = -1
    x = some_block(rows, kind, 2)
    take_steps(x, rows, kind, arms, rewards - rewards[0])
    for lane in range(LANES):
        volume, square, means = written_out(x, rows, kind, lane, arms, rewards)
        assert x[rows.volume, lane] == pytest.approx(volume, abs=1e-8)
        assert x[rows.square, lane] == pytest.approx(square, rel=1e-8)
        assert x[rows.after, lane] == pytest.approx(-0.5 * (volume + (16 - len(missing)) * math.log(square)), rel=1e-8)
        mine = x[rows.mean : rows.mean + 3, lane].copy()
        if kind.p > 0:
            newest = 0 if kind.form == TURNING else 17 % kind.p
            mine += x[rows.beta : rows.beta + 3, lane] * x[rows.mean + 3 + newest, lane]
        if kind.form == TURNING:
            mine += x[rows.kappa : rows.kappa + 3, lane] * x[rows.mean + 4, lane]
        np.testing.assert_allclose(mine, means, atol=1e-8)


@pytest.mark.parametrize("missing", [[], [5, 6, 11, 12, 20]], ids=["", "missing"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_replaying_is_stepping(kind, missing):
    rows, rng = rows_of(2, 5), np.random.default_rng(3)
    arms, rewards = rng.integers(0, 2, 30), rng.normal(size=30)
    arms[missing] = -1
    rewards -= rewards[0]
    stepped, whole, part = (some_block(rows, kind, 4) for _ in range(3))
    take_steps(stepped, rows, kind, arms, rewards)
    take_again(whole, rows, kind, arms, rewards, 0, 12)
    beliefs = slice(rows.mean, rows.past)
    for row in (beliefs, rows.before, rows.after):
        np.testing.assert_allclose(whole[row], stepped[row], atol=1e-9)
    half = some_block(rows, kind, 4)
    take_steps(half, rows, kind, arms[:12], rewards[:12])
    np.testing.assert_allclose(whole[rows.later : rows.before], half[beliefs], atol=1e-9)
    part[rows.past : rows.later] = half[beliefs]
    take_again(part, rows, kind, arms, rewards, 12, -1)
    np.testing.assert_allclose(part[beliefs], stepped[beliefs], atol=1e-9)


def lived(spec, world, steps, seed=0, trial=0, shift=0.0, scale=1.0):
    """The State after some steps of a trial, and the arms it chose."""
    state, walk, chosen = spec.init(world.arms), Simulator(world, seed, trial), []
    for _ in range(steps):
        chosen.append(decide(state, walk.bits))
        learn(state, chosen[-1], shift + scale * walk.reward(chosen[-1]))
        walk.advance(chosen[-1])
    return state, chosen


def test_populations_agree_with_importance_sampling_from_the_prior():
    # Only the filter, which the tests above hold to the joint law, is common to both sides.
    rng, n = np.random.default_rng(5), 25
    arms = rng.integers(0, 2, n)
    z = np.zeros(n)
    for t in range(1, n):
        z[t] = 0.8 * z[t - 1] + rng.normal()
    rewards = 3.0 + np.where(arms == 0, -1.0, 1.0) * z + 0.7 * rng.normal(size=n)
    spec = larl.Auto(particles=2560)  # with the default 160, which signs the arms have is itself uncertain
    whole = spec.init(2)
    for arm, reward in zip(arms, rewards, strict=True):
        learn(whole, int(arm), float(reward))
    state = whole.swarm
    for mine in (1, 2, 3, 4):  # wandering levels, a state that turns, p = 1, p = 2
        kind, _, weight, _ = auto.breeds(2, spec.orders, spec.particles)[mine]
        p, fresh, blocks, rows = kind.p, larl.Auto().init(2).swarm, 6000, state.rows
        size = p + 2 + {LATENT: 4, WANDERING: 5, TURNING: 6}[kind.form]
        mean, sd = fresh.populations.mean[mine, :size], np.diag(fresh.populations.precision[mine])[:size] ** -0.5
        data = np.zeros((blocks, rows.end, LANES))
        data[:, :size] = mean[:, None] + sd[:, None] * rng.normal(size=(blocks, size, LANES))
        data[:, rows.sign : rows.phi] = rng.choice([-1.0, 1.0], size=(blocks, 2, LANES))
        derive_all(data, np.zeros(blocks, dtype=np.int64), rows, np.array([p]), np.array([kind.form]))
        for x in data:
            take_steps(x, rows, kind, arms, rewards - rewards[0])
        logs = data[:, rows.after].ravel()
        share = np.exp(logs - logs.max())
        evidence = logs.max() + math.log(share.mean())
        share /= share.sum()
        owned = state.data[state.owner == mine]
        weights = np.exp(owned[:, rows.weight].ravel() - state.populations.evidence[mine])
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)
        # They passed through several resamplings: about a quarter of them count as independent.
        few, many = weights.size / 4.0, 1.0 / np.sum(share**2)
        assert abs(state.populations.evidence[mine] - weight - evidence) < 4.0 * math.sqrt(2.0 / few + 2.0 / many)
        for i in [*range(p), p + 2, p + 3]:
            exact, spread = share @ data[:, i].ravel(), 0.0
            spread = math.sqrt(share @ (data[:, i].ravel() - exact) ** 2)
            bound = 4.0 * spread * math.sqrt(1.0 / few + 1.0 / many)
            assert abs(weights @ owned[:, i].ravel() - exact) < bound, (mine, i)


@numba.njit
def resampled(data, owner, mine, rows, evidence, u):
    resample(data, owner, mine, rows, evidence, u)


def test_resampling_copies_in_proportion():
    rows, rng = rows_of(2, 1), np.random.default_rng(6)
    owner = np.array([1, 0, 1, 0])
    data = rng.normal(size=(4, rows.end, LANES))
    before, weights = data.copy(), rng.exponential(size=(2, LANES)) ** 2
    data[owner == 1, rows.weight] = np.log(weights) - 3.0
    evidence = math.log(weights.sum()) - 3.0
    resampled(data, owner, 1, rows, evidence, 0.37)
    np.testing.assert_array_equal(data[owner == 0], before[owner == 0])
    marks = before[owner == 1][:, 0].ravel()
    copies = np.array([(data[owner == 1][:, 0] == mark).sum() for mark in marks])
    assert copies.sum() == 2 * LANES
    assert np.abs(copies - 2 * LANES * (weights / weights.sum()).ravel()).max() < 1.0
    np.testing.assert_allclose(data[owner == 1, rows.weight], evidence - math.log(2 * LANES))


@numba.njit
def fitted(data, owner, rows, size, normal, mean, precision, work):
    fit(data, owner, 0, rows, size, 0.0, normal)
    become_prior(normal, size, mean, precision, work)


def test_a_population_becomes_a_prior():
    rows, rng, size = rows_of(2, 3), np.random.default_rng(7), 6
    data = rng.normal(size=(40, rows.end, LANES))
    data[:, 1] += data[:, 0]
    data[:, rows.weight] = -math.log(40 * LANES)
    state = larl.Auto().init(2).swarm
    mean, precision = np.zeros(size), np.zeros((size, size))
    fitted(data, np.zeros(40, dtype=np.int64), rows, size, state.normal, mean, precision, np.zeros(size))
    theta = np.moveaxis(data[:, :size], 1, 0).reshape(size, -1)
    cov = np.cov(theta, ddof=0)
    cov = np.where(np.eye(size) > 0, cov + 1e-6, 0.9 * cov)
    np.testing.assert_allclose(mean, theta.mean(axis=1), atol=1e-10)
    np.testing.assert_allclose(precision @ cov, np.eye(size), atol=1e-9)


@pytest.mark.parametrize(("shift", "scale"), [(1000.0, 1.0), (-1000.0, 1.0), (0.0, 1e-3), (0.0, 1e3), (512.0, 0.25)])
def test_choices_do_not_depend_on_units(shift, scale):
    _, plain = lived(larl.Auto(), THREE_ARMS, 120)
    _, other = lived(larl.Auto(), THREE_ARMS, 120, shift=shift, scale=scale)
    assert plain == other


def test_arms_are_tried_while_all_rewards_are_equal():
    state = larl.Auto().init(3)
    chosen = set()
    for t in range(30):
        arm = decide(state, int(larl._core.random.policy_bits(1, 1, t)))
        chosen.add(arm)
        learn(state, arm, 1.0)
    assert chosen == {0, 1, 2}
    learn(state, 0, 2.0)
    assert np.isfinite(state.score).all()


def test_hostile_rewards_leave_finite_scores():
    rng = np.random.default_rng(8)
    state = larl.Auto(memory=20).init(2)
    for t in range(90):
        reward = [0.0, 1e6, -1e-6, 1e6 * rng.standard_cauchy()][t % 4]
        learn(state, int(rng.integers(2)), reward)
        assert np.isfinite(state.score).all()


def test_memory_bounds_what_is_kept_and_changes_nothing_before_it_turns():
    world = worlds.paper(1)
    full, short = larl.Auto(memory=200), larl.Auto(memory=40)
    _, chosen = lived(full, world, 80)
    _, other = lived(short, world, 80)
    assert chosen == other  # until 2 × 40 steps nothing was forgotten
    state, _ = lived(short, world, 200)
    assert state.swarm.history.arm.size == 80
    assert list(state.swarm.window) == [160, 200]


def test_relabelling_the_arms_changes_nothing_but_chance():
    # The same luck, arms the other way round. Particles are drawn for arms by number, so single choices may differ.
    trials, world = 60, larl.LatentAR(gammas=(0.8,), beta=(-1.0, 0.6), mu=(0.3, 0.0))
    turned = larl.LatentAR(gammas=(0.8,), beta=(0.6, -1.0), mu=(0.0, 0.3))
    totals = [
        larl.compare({"Auto": larl.Auto()}, each, horizon=60, trials=trials, seed=9).total().values.ravel()
        for each in (world, turned)
    ]
    apart = totals[0] - totals[1]
    assert abs(apart.mean()) < 4.0 * apart.std(ddof=1) / math.sqrt(trials)


def test_regret_lies_far_below_larl_with_bic_and_above_the_filter():
    trials = 60
    policies = {"Auto": larl.Auto(), "BIC": larl.LARLBIC(40), "Kalman": larl.KalmanOracle()}
    total = larl.compare(policies, worlds.paper(1), horizon=200, trials=trials, seed=10).total("k")
    mine, bic, kalman = (total.sel(policy=name).values for name in policies)
    closed = bic - mine - 0.6 * (bic - kalman)  # over 60% of the gap
    assert closed.mean() > 4.0 * closed.std(ddof=1) / math.sqrt(trials)
    assert (mine - kalman).mean() > 0.0


def test_still_arms_cost_no_more_than_ucb():
    trials = 60
    world = larl.LatentAR(gammas=(0.0,), beta=(0.0, 0.0, 0.0), mu=(0.0, 0.5, 1.0), noise="common")
    total = larl.compare({"Auto": larl.Auto(), "UCB": larl.UCB()}, world, horizon=200, trials=trials, seed=11).total()
    apart = (total.sel(policy="Auto") - total.sel(policy="UCB")).values
    assert apart.mean() < 3.0 * apart.std(ddof=1) / math.sqrt(trials)
