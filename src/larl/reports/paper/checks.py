"""The paper's mathematics, measured: identities by their largest error, bounds by how far above the truth they are."""

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


def history(world: LatentAR, steps: int, trials: int, seed: int) -> tuple[NDArray[np.int64], Floats]:
    """Arms and rewards of random play: (trials, steps) each."""
    played = compare({"random": Random()}, world, horizon=steps, trials=trials, seed=seed, progress=False)
    return played.arm.values[0].astype(np.int64), played.reward.values[0]


def predictions(world: LatentAR, arms: NDArray[np.int64], rewards: Floats) -> Floats:
    """z̃_0 … z̃_T of the steady-state filter, started at the stationary mean: (T + 1, k)."""
    steady, z = steady_state(world), np.full(world.k, world.stationary_mean)
    found = [z]
    for arm, reward in zip(arms, rewards, strict=True):
        z = steady.closed_loop @ z + steady.predictor_gain * ((reward - world.mu[arm]) / world.beta[arm]) + steady.drift
        found.append(z)
    return np.array(found)


def contexts(arms: NDArray[np.int64], rewards: Floats, s: int, count: int) -> Floats:
    """Φ_s, Φ_{s+1} … Φ_T, rows [R, A, 1] with the oldest lag first."""
    steps = arms.size + 1 - s
    blocks = np.zeros((2, steps, s, count))
    for j in range(s):
        lag = arms[j : j + steps]
        blocks[0, np.arange(steps), j, lag] = rewards[j : j + steps]
        blocks[1, np.arange(steps), j, lag] = 1.0
    return np.hstack([blocks[0].reshape(steps, -1), blocks[1].reshape(steps, -1), np.ones((steps, 1))])


def _small_worlds(seed: int, cases: int) -> Iterator[tuple[LatentAR, NDArray[np.int64], Floats]]:
    """Random worlds with γ₀ = 0.3, begun in the steady state, each with ten steps of random play."""
    for case in range(cases):
        world = worlds.random(1 + case % 5, 2 + case % 3, seed + case, radius=0.9)
        world = steady_start(LatentAR.from_dict(world.to_dict() | {"gamma0": 0.3}))
        arms, rewards = (each[0] for each in history(world, 10, 1, seed + case))
        yield world, arms, rewards


def reduction_error(seed: int, cases: int = 50) -> float:
    """Largest |Φᵀθ_a + b − filter| over random worlds and all s ≤ 10 (Lemma 2)."""
    largest = 0.0
    for world, arms, rewards in _small_worlds(seed, cases):
        z = predictions(world, arms, rewards)
        filtered = np.array(world.mu) + np.multiply.outer(z[:, 0], world.beta)
        for s in range(11):
            theta, bias = reward_parameters(world, s), z[: 11 - s] @ bias_row(world, s)
            reduced = contexts(arms, rewards, s, world.arms) @ theta.T + np.multiply.outer(bias, world.beta)
            largest = max(largest, float(np.abs(reduced - filtered[s:]).max()))
    return largest


class WholePast(NamedTuple):
    """LARL with the true θ_a and s = t beside the steady-state filter."""

    difference: float  # largest |Φ_t(t)ᵀθ_a − filter's prediction|
    unexplained: float  # the same with β_a e₁ᵀMᵗz̃_0 added, M = Γ − ΓKC
    centred: float  # largest |Φ_t(t)ᵀθ_a − filter's prediction| where γ₀ = 0, so that z̃_0 = 0


def whole_past(seed: int, cases: int = 50) -> WholePast:
    """How far the prediction from the whole past, s = t, is from the filter's, for t = 0 … 10 and every arm."""
    difference, unexplained, centred = 0.0, 0.0, 0.0
    for world, arms, rewards in _small_worlds(seed, cases):
        for case in (world, steady_start(LatentAR.from_dict(world.to_dict() | {"gamma0": 0.0, "start": "stationary"}))):
            z, beta = predictions(case, arms, rewards), np.array(case.beta)
            for t in range(11):
                phi = contexts(arms[:t], rewards[:t], t, case.arms)[0]
                away = reward_parameters(case, t) @ phi - (np.array(case.mu) + beta * z[t, 0])
                if case is world:
                    difference = max(difference, float(np.abs(away).max()))
                    unexplained = max(unexplained, float(np.abs(away + beta * (bias_row(case, t) @ z[0])).max()))
                else:
                    centred = max(centred, float(np.abs(away).max()))
    return WholePast(difference, unexplained, centred)


def differs_from_ucb(seed: int, trials: int = 500) -> tuple[int, int]:
    """In how many of how many choices LARL(0) differs from argmax Σr/(n+λ) + α/√(n+λ), computed here."""
    played = compare({"LARL": LARL(0)}, worlds.paper(1), horizon=200, trials=trials, seed=seed, progress=False)
    arms, rewards = played.arm.values[0].astype(np.int64), played.reward.values[0]
    plays, total, rows = np.zeros((trials, 2)), np.zeros((trials, 2)), np.arange(trials)
    differ = 0
    for t in range(arms.shape[1]):
        index = total / (plays + 1.0) + 1.0 / np.sqrt(plays + 1.0)
        differ += int(np.sum(index.argmax(axis=1) != arms[:, t]))
        plays[rows, arms[:, t]] += 1.0
        total[rows, arms[:, t]] += rewards[:, t]
    return differ, arms.size


class Coverage(NamedTuple):
    """How often a confidence set holds the truth, and how much smaller it could be."""

    share: float  # of runs after which θ_a of every arm lies in its set
    needed: float  # the factor by which the radius could be multiplied and still cover 1 − δ of the runs


def coverage(world: LatentAR, s: int, steps: int, runs: int, delta: float, seed: int) -> dict[str, Coverage]:
    """The confidence set of Lemma 3 after random play, by the form of its radius."""
    world, ridge = steady_start(world), 1.0
    theta, row = reward_parameters(world, s), bias_row(world, s)
    arms, rewards = history(world, steps, runs, seed)
    ratios = {form: np.zeros(runs) for form in ("printed", "corrected")}  # of distance to radius, the worst arm's
    for run in range(runs):
        z, phi = predictions(world, arms[run], rewards[run]), contexts(arms[run], rewards[run], s, world.arms)[:-1]
        for arm in range(world.arms):
            mine = arms[run, s:] == arm
            x, bias = phi[mine], world.beta[arm] * (z[: steps - s] @ row)[mine]
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            away = np.linalg.solve(gram, x.T @ rewards[run, s:][mine]) - theta[arm]
            distance, tau = math.sqrt(away @ gram @ away), math.sqrt(np.trace(np.linalg.solve(gram, x.T @ x)))
            for form, worst in ratios.items():
                radius = confidence_radius(
                    world,
                    s,
                    int(mine.sum()),
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
    """A bound beside what it bounds."""

    k: int
    theorem: float  # Theorem 1 as printed, with what each run turned out to be: mean over runs
    mixed: float  # the printed first term, the others bounded before the trial
    reason: str
    corrected: float
    first_term: float
    trivial: float
    held: float  # share of runs
    regret: float  # mean


def bound_check(k: int, horizon: int, runs: int, delta: float, seed: int) -> BoundCheck:
    """Theorem 1 for LARL(k) with its theoretical radius in the paper's world of order k, begun in the steady state."""
    world = steady_start(worlds.paper(k))
    mixed = regret_bound(world, k, horizon, delta=delta, form="printed")
    bound = regret_bound(world, k, horizon, delta=delta)
    policy = LARL(k, radius="theory", delta=bound.delta)
    result = compare({"LARL": policy}, world, horizon=horizon, trials=runs, seed=seed, progress=False)
    total = result.total().values.ravel()
    arms, rewards = result.arm.values[0].astype(np.int64), result.reward.values[0]
    some = [printed_theorem(world, k, arms[run], rewards[run], delta) for run in range(min(runs, 100))]
    return BoundCheck(
        k=k,
        theorem=float(np.mean(some)),
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
    """The right-hand side of Theorem 1 as the paper prints it, evaluated on one run; infinite where σ_max(Γ) ≥ 1.

    8 max‖c_a‖√(σ_z²/(1 − σ_max(Γ)²))√(2(k + log(3/δ)))T + 2β_T(2δ/3)√(ΣΦᵀV⁻¹Φ)√T + 2Σ max|b|, with Lemma 3's radius and
    with L of Lemma 4 as printed, from the reward noise alone.
    """
    singular, steps = float(np.linalg.norm(world.system.gamma, 2)), arms.size
    if singular >= 1.0:
        return math.inf
    beta, mu, d, part = np.array(world.beta), np.array(world.mu), 2 * s * world.arms + 1, delta / 3.0
    size = world.sigma_z**2 / (1.0 - singular**2) * 2.0 * (world.k + math.log(3.0 / delta))
    first = 8.0 * float(np.abs(beta).max()) * math.sqrt(size) * steps
    reach = float((mu + beta * world.stationary_mean + np.sqrt(2.0 * world.sd**2 * math.log(1.0 / part))).max())
    length = s * (reach**2 + 1.0) + 1.0
    phi, z = contexts(arms, rewards, s, world.arms)[:-1], predictions(world, arms, rewards)
    bias = np.multiply.outer(z[: steps - s] @ bias_row(world, s), beta)
    inverse = np.repeat(np.eye(d)[None] / ridge, world.arms, axis=0)
    potential = 0.0
    for row, arm in zip(phi, arms[s:], strict=True):
        turned = inverse[arm] @ row
        width = float(row @ turned)
        potential += width
        inverse[arm] -= np.outer(turned, turned) / (1.0 + width)
    radius = 0.0
    for arm in range(world.arms):
        mine = arms[s:] == arm
        tau = math.sqrt(float(np.einsum("ij,jk,ik->", phi[mine], inverse[arm], phi[mine])))
        noise = noise_scale(world)[arm] * math.sqrt(d * math.log((1.0 + mine.sum() * length / ridge) / part))
        ends = math.sqrt(ridge) * float(np.linalg.norm(reward_parameters(world, s)[arm]))
        radius = max(radius, noise + ends + tau * float(np.linalg.norm(bias[mine, arm])))
    return first + 2.0 * radius * math.sqrt(potential * steps) + 2.0 * float(np.abs(bias).max(axis=1).sum())
