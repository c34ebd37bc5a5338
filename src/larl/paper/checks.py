"""The paper's mathematics, measured: identities by their largest error, probabilities by their share of runs."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl import worlds
from larl.comparison import compare
from larl.filter import filter_path, steady_state
from larl.policies import LARL, UCB, Random
from larl.theory import bias_row, confidence_radius, regret_bound, reward_parameters, steady_start
from larl.world import LatentAR

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
        z = steady.closed @ z + steady.push * ((reward - world.mu[arm]) / world.beta[arm]) + steady.drift
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


def reduction_error(seed: int, cases: int = 50) -> tuple[float, float]:
    """Largest |Φᵀθ_a + b − filter| over random worlds and all s ≤ 10; and |Φᵀθ_a − exact filter| where s = t."""
    largest, at_start = 0.0, 0.0
    for case in range(cases):
        world = worlds.random(1 + case % 5, 2 + case % 3, seed + case, radius=0.9)
        world = steady_start(LatentAR.from_dict(world.to_dict() | {"gamma0": 0.3}))
        arms, rewards = (each[0] for each in history(world, 10, 1, seed + case))
        z = predictions(world, arms, rewards)
        filtered = np.array(world.mu) + np.multiply.outer(z[:, 0], world.beta)
        for s in range(11):
            theta, bias = reward_parameters(world, s), z[: 11 - s] @ bias_row(world, s)
            reduced = contexts(arms, rewards, s, world.arms) @ theta.T + np.multiply.outer(bias, world.beta)
            largest = max(largest, float(np.abs(reduced - filtered[s:]).max()))
        exact, _ = filter_path(world, arms, rewards)
        at_start = max(at_start, float(np.abs(exact - z[:-1, 0]).max()))
    return largest, at_start


def same_as_ucb(seed: int) -> float:
    """The share of choices in which LARL(0) and UCB differ."""
    result = compare(
        {"LARL": LARL(0), "UCB": UCB()}, worlds.paper(1), horizon=200, trials=500, seed=seed, progress=False
    )
    return float((result.arm.sel(policy="LARL") != result.arm.sel(policy="UCB")).mean())


def coverage(world: LatentAR, s: int, steps: int, runs: int, delta: float, seed: int) -> dict[str, float]:
    """The share of runs after which θ_a of every arm lies in its confidence set, by the form of the radius."""
    world, ridge = steady_start(world), 1.0
    theta, row = reward_parameters(world, s), bias_row(world, s)
    arms, rewards = history(world, steps, runs, seed)
    covered = {"printed": 0, "corrected": 0}
    for run in range(runs):
        z, phi = predictions(world, arms[run], rewards[run]), contexts(arms[run], rewards[run], s, world.arms)[:-1]
        inside = dict.fromkeys(covered, True)
        for arm in range(world.arms):
            mine = arms[run, s:] == arm
            x, bias = phi[mine], world.beta[arm] * (z[: steps - s] @ row)[mine]
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            away = np.linalg.solve(gram, x.T @ rewards[run, s:][mine]) - theta[arm]
            distance, tau = math.sqrt(away @ gram @ away), math.sqrt(np.trace(np.linalg.solve(gram, x.T @ x)))
            for form in covered:
                radius = confidence_radius(
                    world, s, int(mine.sum()), steps, squared_bias=float(bias @ bias), tau=tau, arm=arm, delta=delta,
                    ridge=ridge, form=form,
                )  # fmt: skip
                inside[form] &= distance <= radius
        for form in covered:
            covered[form] += inside[form]
    return {form: count / runs for form, count in covered.items()}


class BoundCheck(NamedTuple):
    """A bound beside what it bounds."""

    k: int
    printed: float
    reason: str
    corrected: float
    first_term: float
    trivial: float
    held: float  # share of runs
    regret: float  # mean


def bound_check(k: int, horizon: int, runs: int, delta: float, seed: int) -> BoundCheck:
    """Theorem 1 for LARL(k) with its theoretical radius in the paper's world of order k, begun in the steady state."""
    world = steady_start(worlds.paper(k))
    printed = regret_bound(world, k, horizon, delta=delta, form="printed")
    bound = regret_bound(world, k, horizon, delta=delta)
    policy = LARL(k, radius="theory", delta=bound.delta)
    result = compare({"LARL": policy}, world, horizon=horizon, trials=runs, seed=seed, keep="summary", progress=False)
    total = result.total().values.ravel()
    return BoundCheck(
        k, printed.total, printed.reason, bound.total, bound.nonstationarity, bound.trivial,
        float(np.mean(total <= bound.total)), float(total.mean()),
    )  # fmt: skip
