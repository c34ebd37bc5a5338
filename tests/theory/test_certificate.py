"""Certificates: coverage of confidence sets at all steps under adaptive play, and the bound on the total gap."""

import math
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl import worlds
from larl.theory import bias_row, certificate, decompose, noise_scale, steady_start
from larl.theory._confidence_sets import Fit, confidence_sets, largest_total_gap, radius
from larl.theory._regressions import Settings, candidates
from larl.theory.certificate import assumptions, bias_norm, filter_weights
from tests.conftest import THREE_ARMS
from tests.theory.test_decompose import steady_predictions

TWO = steady_start(larl.LatentAR(gammas=[0.8, -0.3], beta=[1.0, -0.6], mu=[0.5, 0.2], gamma0=0.2))
THREE = steady_start(THREE_ARMS)


def true_parameters(world: larl.LatentAR, model: str, settings: Settings, noise: np.ndarray) -> list[np.ndarray]:
    """Return θ of each regression in the units of `noise`, from the filter's weights; signs are relative to arm 0."""
    g, sign, scale = filter_weights(world, settings.s), np.sign(world.beta), noise_scale(world)
    level = (np.array(world.mu) + np.array(world.beta) * world.stationary_mean) / noise
    assert np.allclose(np.abs(world.beta) / scale, np.abs(world.beta[0]) / scale[0])
    if model == "known":
        return [g]
    if model == "shared":
        level = sign[0] * sign * level
        return [np.concatenate([g, -np.outer(g, level).ravel(), level])]
    return [
        np.concatenate([np.outer(g, sign[a] * sign).ravel(), -np.outer(g, sign[a] * sign * level).ravel(), [level[a]]])
        for a in range(world.arms)
    ]


def largest_ratio(world, policy, *, model, is_noise_known, s, steps, runs, ridge, delta, guess=1.0):
    """Return, for each run, the largest ‖θ − θ̂‖_V/radius over all steps and regressions, in batches over runs."""
    result = larl.compare({"it": policy}, world, horizon=steps, trials=runs, seed=5)
    arms, rewards = result.arm.values[0].astype(int), result.reward.values[0]
    settings, known = assumptions(world, steps, s=s, ridge=ridge, delta=0.1 * delta, slack=1.0)
    known = known._replace(noise=known.noise * guess)
    truth = true_parameters(world, model, settings, known.noise)
    is_true = tuple(np.sign(world.beta) * np.sign(world.beta[0]))
    worst = np.zeros(runs)
    models = []
    for run in range(runs):
        options = candidates(model, arms[run], rewards[run], known, settings)
        models.append(options[0] if len(options) == 1 else next(m for m in options if m.signs == is_true))
    one, every = models[0], slice(0, steps)
    log_level = math.log(len(truth) * (2 ** (world.arms - 1) if model == "shared" else 1) / (0.9 * delta))
    for regression, theta in enumerate(truth):
        x, y = np.zeros((runs, steps, theta.size)), np.zeros((runs, steps))
        for run, each in enumerate(models):
            own = arms[run] == regression if model == "separate" else np.ones(steps, bool)
            x[run, own], y[run, own] = each.rows(regression, every, each.features(every))
        gram = np.tile(np.diag(one.penalty), (runs, 1, 1))
        moment, square, rows = np.zeros((runs, theta.size)), np.zeros(runs), np.zeros(runs, int)
        for t in range(steps):
            gram += x[:, t, :, None] * x[:, t, None, :]
            moment, square = moment + x[:, t] * y[:, t, None], square + y[:, t] ** 2
            rows += x[:, t].any(axis=1) | (y[:, t] != 0)
            estimate = np.linalg.solve(gram, moment[..., None])[..., 0]
            log_det = np.linalg.slogdet(gram)[1] - np.log(one.penalty).sum()
            loss = np.maximum(square - (moment * estimate).sum(axis=1), 0.0)
            distance = np.sqrt(np.einsum("ri,rij,rj->r", estimate - theta, gram, estimate - theta))
            for run in range(runs):
                fitted = Fit(gram[run], estimate[run], log_det[run], loss[run], int(rows[run]))
                size = radius(fitted, one.squared_size, log_level, known.bias, is_noise_known=is_noise_known)
                worst[run] = max(worst[run], distance[run] / size)
    return worst


@pytest.mark.parametrize(
    ("world", "model", "is_noise_known", "policy", "guess"),
    [
        (TWO, "separate", True, larl.LARL(2), 1.0),
        (TWO, "separate", False, larl.LARL(2), 3.0),
        (TWO, "shared", True, larl.LARL(2), 1.0),
        (THREE, "shared", False, larl.Random(), 0.5),
        (THREE, "known", True, larl.UCB(), 1.0),
    ],
)
def test_confidence_sets_cover_at_all_steps_and_could_not_be_much_smaller(world, model, is_noise_known, policy, guess):
    # 200 runs of 80 steps; a run fails if any set misses at any step. The same sets with 0.3 of the radius miss.
    delta, runs = 0.1, 200
    ratio = largest_ratio(
        world,
        policy,
        model=model,
        is_noise_known=is_noise_known,
        s=3,
        steps=80,
        runs=runs,
        ridge=0.5,
        delta=delta,
        guess=guess,
    )
    allowed = delta + 4 * np.sqrt(delta * (1 - delta) / runs)
    assert np.mean(ratio > 1.0) <= allowed
    assert np.mean(ratio > 0.3) > 2 * allowed


@pytest.mark.parametrize(("model", "noise"), [("separate", "known"), ("shared", "unknown"), ("known", "known")])
def test_total_gap_is_below_the_certificate_and_above_the_plain_estimate(model, noise):
    # 60 runs of two policies; the share of runs above the bound is at most δ = 0.1 within 4 standard errors.
    result = larl.compare({"LARL": larl.LARL(2), "random": larl.Random()}, THREE, horizon=150, trials=60, seed=2)
    gaps = decompose(result, THREE).gaps
    for steps in (20, 150):
        bound = certificate(result, THREE, model=model, noise=noise, steps=steps, delta=0.1)
        total = gaps[..., :steps].sum(axis=-1)
        assert np.mean(total > bound.learning) <= 0.1 + 4 * math.sqrt(0.09 / 120)
        assert (bound.learning <= bound.per_step + 1e-9).all()
        assert (bound.learning[1] > bound.learning[0]).mean() > 0.5  # random play has larger gaps, and it shows


def test_joint_bound_holds_for_the_worst_parameters_that_ascent_finds():
    # Σ_t gap_t is convex in θ; ascent along its gradient finds large values on the ellipsoid's boundary.
    result = larl.compare({"LARL": larl.LARL(1)}, TWO, horizon=200, trials=3, seed=4)
    settings, known = assumptions(TWO, 200, s=3, ridge=3.0, delta=0.01, slack=1.0)
    rng = np.random.default_rng(0)
    for trial in range(3):
        arms, rewards = result.arm.values[0, trial].astype(int), result.reward.values[0, trial]
        models = candidates("shared", arms, rewards, known, settings)
        for model, sets in zip(models, confidence_sets(models, 0.1, 0.0, is_noise_known=True), strict=True):
            if sets is None:
                continue
            (ellipsoid,), every = sets, slice(0, 200)
            bound, root = largest_total_gap(model, sets), np.linalg.inv(np.linalg.cholesky(ellipsoid.gram)).T
            gradients = np.stack([model.gradient(arm, every, model.features(every)) for arm in range(2)], axis=1)
            largest = 0.0
            for _ in range(20):
                direction = rng.normal(size=root.shape[0])
                for _ in range(30):
                    theta = ellipsoid.centre + ellipsoid.radius * root @ direction / np.linalg.norm(direction)
                    values = gradients @ theta
                    best = values.argmax(axis=1)
                    largest = max(largest, float(values.max(axis=1).clip(0.0).sum()))
                    chosen = gradients[np.arange(200), best][values.max(axis=1) > 0.0]
                    direction = root.T @ chosen.sum(axis=0) + 1e-9
            assert largest <= bound.joint <= bound.per_step + 1e-9
            assert bound.joint <= 3.0 * largest


def test_bias_norm_has_its_coverage_and_is_not_much_too_large():
    world, s, steps, runs, delta = TWO, 2, 100, 400, 0.2
    result = larl.compare({"random": larl.Random()}, world, horizon=steps, trials=runs, seed=1)
    arms, rewards = result.arm.values[0].astype(int), result.reward.values[0]
    z = steady_predictions(world, arms, rewards) - world.stationary_mean
    scale = noise_scale(world)[0] / abs(world.beta[0])
    norm = np.sqrt(np.square(z[:, : steps - s] @ bias_row(world, s) / scale).sum(axis=1))
    bound = bias_norm(world, s, steps, delta)
    assert np.mean(norm > bound) <= delta + 4 * math.sqrt(delta * (1 - delta) / runs)
    assert np.mean(norm > 0.3 * bound) > 0.5


def test_certificate_is_informative_where_the_theorem_is_not():
    world = steady_start(worlds.paper(1))
    result = larl.compare({"LARL": larl.LARL(1)}, world, horizon=2000, trials=2, seed=1)
    random = 2000 * larl.theory.random_regret(world)
    relative = {model: certificate(result, world, model=model) for model in ("separate", "shared", "known")}
    totals = [float((each.floor + each.learning.max()) / random) for each in relative.values()]
    assert 1.0 > totals[0] > totals[1] > totals[2] > decompose(result, world).table["regret"].item() / random - 0.05
    wider = certificate(result, world, slack=2.0)
    assert (wider.learning > relative["separate"].learning).all()


def test_worlds_and_results_without_a_certificate_are_refused():
    policies, world = {"UCB": larl.UCB()}, replace(worlds.paper(1), start="stationary")
    with pytest.raises(larl.InvalidValue, match=r"world\.start"):
        certificate(larl.compare(policies, world, horizon=10, trials=2), world)
    steady = steady_start(world)
    result = larl.compare(policies, steady, horizon=10, trials=2)
    with pytest.raises(larl.InvalidValue, match="steps = 11"):
        certificate(result, steady, steps=11)
    with pytest.raises(larl.InvalidValue, match="model = 'all'"):
        certificate(result, steady, model="all")
