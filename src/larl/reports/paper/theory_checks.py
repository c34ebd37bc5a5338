"""Numerical checks of the paper's theory: the largest error of identities, and how loose the bounds are."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl import worlds
from larl.policies import LARL, Random
from larl.simulation.compare import compare
from larl.statespace.steady_state import steady_state
from larl.theory import bias_row, confidence_radius, noise_scale, regret_bound, reward_parameters, steady_start
from larl.worlds.latent_ar import LatentAR

Floats = NDArray[np.float64]


def random_play(world: LatentAR, steps: int, trials: int, seed: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the arms and rewards of random play, each of shape (trials, steps)."""
    result = compare({"random": Random()}, world, horizon=steps, trials=trials, seed=seed, progress=False)
    return result.arm.values[0].astype(np.int64), result.reward.values[0]


def steady_predictions(world: LatentAR, arms: NDArray[np.int64], rewards: Floats) -> Floats:
    """Return z̃_0 … z̃_T of the steady-state filter started at the stationary mean, of shape (T + 1, k)."""
    steady, z = steady_state(world), np.full(world.k, world.stationary_mean)
    path = [z]
    for arm, reward in zip(arms, rewards, strict=True):
        z = steady.closed_loop @ z + steady.predictor_gain * ((reward - world.mu[arm]) / world.beta[arm]) + steady.drift
        path.append(z)
    return np.array(path)


def contexts(arms: NDArray[np.int64], rewards: Floats, s: int, count: int) -> Floats:
    """Return the contexts Φ_s … Φ_T: rows [R, A, 1] with the oldest lag first."""
    steps = arms.size + 1 - s
    blocks = np.zeros((2, steps, s, count))
    for j in range(s):
        lag = arms[j : j + steps]
        blocks[0, np.arange(steps), j, lag] = rewards[j : j + steps]
        blocks[1, np.arange(steps), j, lag] = 1.0
    return np.hstack([blocks[0].reshape(steps, -1), blocks[1].reshape(steps, -1), np.ones((steps, 1))])


def _small_worlds(seed: int, cases: int) -> Iterator[tuple[LatentAR, NDArray[np.int64], Floats]]:
    """Yield random worlds with γ₀ = 0.3 that start in the steady state, with ten steps of random play in each."""
    for case in range(cases):
        world = worlds.random(1 + case % 5, 2 + case % 3, seed + case, radius=0.9)
        world = steady_start(LatentAR.from_dict(world.to_dict() | {"gamma0": 0.3}))
        arms, rewards = (each[0] for each in random_play(world, 10, 1, seed + case))
        yield world, arms, rewards


def reduction_error(seed: int, cases: int = 50) -> float:
    """Return the largest |Φᵀθ_a + b − filter| over random worlds and all s ≤ 10 (Lemma 2)."""
    largest = 0.0
    for world, arms, rewards in _small_worlds(seed, cases):
        z = steady_predictions(world, arms, rewards)
        filtered = np.array(world.mu) + np.multiply.outer(z[:, 0], world.beta)
        for s in range(11):
            theta, bias = reward_parameters(world, s), z[: 11 - s] @ bias_row(world, s)
            reduced = contexts(arms, rewards, s, world.arms) @ theta.T + np.multiply.outer(bias, world.beta)
            largest = max(largest, float(np.abs(reduced - filtered[s:]).max()))
    return largest


class FullHistoryError(NamedTuple):
    """The difference between LARL's prediction with the true θ_a and s = t, and that of the steady-state filter."""

    difference: float  # largest |Φ_t(t)ᵀθ_a − filter's prediction|
    unexplained: float  # the same after adding β_a e₁ᵀMᵗz̃_0, M = Γ − ΓKC
    centred: float  # largest |Φ_t(t)ᵀθ_a − filter's prediction| with γ₀ = 0, so that z̃_0 = 0


def full_history_error(seed: int, cases: int = 50) -> FullHistoryError:
    """Return the error of the prediction from the full history, s = t, for t = 0 … 10 and every arm."""
    difference, unexplained, centred = 0.0, 0.0, 0.0
    for world, arms, rewards in _small_worlds(seed, cases):
        for case in (world, steady_start(LatentAR.from_dict(world.to_dict() | {"gamma0": 0.0, "start": "stationary"}))):
            z, beta = steady_predictions(case, arms, rewards), np.array(case.beta)
            for t in range(11):
                phi = contexts(arms[:t], rewards[:t], t, case.arms)[0]
                error = reward_parameters(case, t) @ phi - (np.array(case.mu) + beta * z[t, 0])
                if case is world:
                    difference = max(difference, float(np.abs(error).max()))
                    unexplained = max(unexplained, float(np.abs(error + beta * (bias_row(case, t) @ z[0])).max()))
                else:
                    centred = max(centred, float(np.abs(error).max()))
    return FullHistoryError(difference, unexplained, centred)


def count_ucb_differences(seed: int, trials: int = 500) -> tuple[int, int]:
    """Return how many of LARL(0)'s choices differ from argmax Σr/(n+λ) + α/√(n+λ), and the number of choices."""
    result = compare({"LARL": LARL(0)}, worlds.paper(1), horizon=200, trials=trials, seed=seed, progress=False)
    arms, rewards = result.arm.values[0].astype(np.int64), result.reward.values[0]
    plays, total, rows = np.zeros((trials, 2)), np.zeros((trials, 2)), np.arange(trials)
    differ = 0
    for t in range(arms.shape[1]):
        index = total / (plays + 1.0) + 1.0 / np.sqrt(plays + 1.0)
        differ += int(np.sum(index.argmax(axis=1) != arms[:, t]))
        plays[rows, arms[:, t]] += 1.0
        total[rows, arms[:, t]] += rewards[:, t]
    return differ, arms.size


class Coverage(NamedTuple):
    """How often a confidence set contains the true parameters, and how much smaller it could be."""

    share: float  # share of runs after which the set of every arm contains θ_a
    needed: float  # smallest factor on the radius that still covers 1 − δ of the runs


def coverage(world: LatentAR, s: int, steps: int, *, runs: int, delta: float, seed: int) -> dict[str, Coverage]:
    """Return the coverage of Lemma 3's confidence set after random play, for each form of its radius."""
    world, ridge = steady_start(world), 1.0
    theta, row = reward_parameters(world, s), bias_row(world, s)
    arms, rewards = random_play(world, steps, runs, seed)
    ratios = {form: np.zeros(runs) for form in ("printed", "corrected")}  # distance over radius of the worst arm
    for run in range(runs):
        z, phi = (
            steady_predictions(world, arms[run], rewards[run]),
            contexts(arms[run], rewards[run], s, world.arms)[:-1],
        )
        for arm in range(world.arms):
            played_arm = arms[run, s:] == arm
            x, bias = phi[played_arm], world.beta[arm] * (z[: steps - s] @ row)[played_arm]
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            error = np.linalg.solve(gram, x.T @ rewards[run, s:][played_arm]) - theta[arm]
            distance, tau = math.sqrt(error @ gram @ error), math.sqrt(np.trace(np.linalg.solve(gram, x.T @ x)))
            for form, worst in ratios.items():
                radius = confidence_radius(
                    world,
                    s,
                    int(played_arm.sum()),
                    steps,
                    squared_bias=float(bias @ bias),
                    tau=tau,
                    arm=arm,
                    delta=delta,
                    ridge=ridge,
                    form=form,
                )
                worst[run] = max(worst[run], distance / radius)
    return {
        form: Coverage(float(np.mean(worst <= 1.0)), float(np.quantile(worst, 1.0 - delta)))
        for form, worst in ratios.items()
    }


class BoundCheck(NamedTuple):
    """The regret bounds and the regret in one world."""

    k: int
    theorem: float  # Theorem 1 as printed, evaluated on each run: mean over runs
    mixed: float  # the printed first term; the other terms bounded before the trial
    reason: str
    corrected: float
    first_term: float
    trivial: float
    held: float  # share of runs within the corrected bound
    regret: float  # mean over runs


def bound_check(k: int, horizon: int, runs: int, delta: float, seed: int) -> BoundCheck:
    """Check Theorem 1 for LARL(k) with its theoretical radius in the paper's world of order k from the steady state."""
    world = steady_start(worlds.paper(k))
    mixed = regret_bound(world, k, horizon, delta=delta, form="printed")
    bound = regret_bound(world, k, horizon, delta=delta)
    policy = LARL(k, radius="corrected", delta=bound.delta)
    result = compare({"LARL": policy}, world, horizon=horizon, trials=runs, seed=seed, progress=False)
    total = result.total().values.ravel()
    arms, rewards = result.arm.values[0].astype(np.int64), result.reward.values[0]
    printed = [printed_theorem(world, k, arms[run], rewards[run], delta) for run in range(min(runs, 100))]
    return BoundCheck(
        k=k,
        theorem=float(np.mean(printed)),
        mixed=mixed.total,
        reason=mixed.reason,
        corrected=bound.total,
        first_term=bound.nonstationarity,
        trivial=bound.trivial,
        held=float(np.mean(total <= bound.total)),
        regret=float(total.mean()),
    )


def printed_theorem(
    world: LatentAR, s: int, arms: NDArray[np.int64], rewards: Floats, delta: float, ridge: float = 1.0
) -> float:
    """Return the right-hand side of Theorem 1 as printed, evaluated on one run; infinite where σ_max(Γ) ≥ 1.

    8 max‖c_a‖√(σ_z²/(1 − σ_max(Γ)²))√(2(k + log(3/δ)))T + 2β_T(2δ/3)√(ΣΦᵀV⁻¹Φ)√T + 2Σ max|b|, with Lemma 3's radius and
    L of Lemma 4 as printed, which counts the reward noise only.
    """
    singular, steps = float(np.linalg.norm(world.system.gamma, 2)), arms.size
    if singular >= 1.0:
        return math.inf
    beta, mu, d, part = np.array(world.beta), np.array(world.mu), 2 * s * world.arms + 1, delta / 3.0
    size = world.sigma_z**2 / (1.0 - singular**2) * 2.0 * (world.k + math.log(3.0 / delta))
    first = 8.0 * float(np.abs(beta).max()) * math.sqrt(size) * steps
    reach = float((mu + beta * world.stationary_mean + np.sqrt(2.0 * world.sd**2 * math.log(1.0 / part))).max())
    length = s * (reach**2 + 1.0) + 1.0
    phi, z = contexts(arms, rewards, s, world.arms)[:-1], steady_predictions(world, arms, rewards)
    bias = np.multiply.outer(z[: steps - s] @ bias_row(world, s), beta)
    inverse = np.repeat(np.eye(d)[None] / ridge, world.arms, axis=0)
    potential = 0.0
    for row, arm in zip(phi, arms[s:], strict=True):
        column = inverse[arm] @ row
        width = float(row @ column)
        potential += width
        inverse[arm] -= np.outer(column, column) / (1.0 + width)
    radius = 0.0
    for arm in range(world.arms):
        played_arm = arms[s:] == arm
        tau = math.sqrt(float(np.einsum("ij,jk,ik->", phi[played_arm], inverse[arm], phi[played_arm])))
        noise = noise_scale(world)[arm] * math.sqrt(d * math.log((1.0 + played_arm.sum() * length / ridge) / part))
        penalty = math.sqrt(ridge) * float(np.linalg.norm(reward_parameters(world, s)[arm]))
        radius = max(radius, noise + penalty + tau * float(np.linalg.norm(bias[played_arm, arm])))
    return first + 2.0 * radius * math.sqrt(potential * steps) + 2.0 * float(np.abs(bias).max(axis=1).sum())
