"""Simulated logs for the tests of larl.diagnosis."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

import larl
from larl.policies import Policy
from larl.worlds import World


def constant_means(*mu: float) -> larl.LatentAR:
    """Return a world with constant means and noise of sd 1."""
    return larl.LatentAR(gammas=[0.5], beta=[0.0] * len(mu), mu=mu, noise="common")


def stationary(k: int) -> larl.LatentAR:
    """Return the paper's world of order k with a stationary start."""
    return larl.LatentAR(gammas=larl.worlds.PAPER_GAMMAS[k], beta=(-1.0, 1.0), mu=(0.0, 0.0))


def simulate_logs(
    world: World, steps: int, count: int, seed: int, policy: Policy | None = None
) -> Iterator[pd.DataFrame]:
    """Yield `count` logs of a policy, random by default."""
    data = larl.compare(
        {"policy": policy or larl.Random()}, world, horizon=steps, trials=count, seed=seed, threads=1, progress=False
    ).data
    arms, rewards = (np.reshape(data[name].values, (count, steps)) for name in ("arm", "reward"))
    for arm, reward in zip(arms, rewards, strict=True):
        yield pd.DataFrame({"t": np.arange(steps), "a": arm, "r": reward})


def at_hours(frame: pd.DataFrame, hours: Sequence[int] = (9, 14, 19)) -> pd.DataFrame:
    """Return the log of one unit with decisions at these hours of every day."""
    number = np.arange(len(frame))
    elapsed = 24 * (number // len(hours)) + np.array(hours)[number % len(hours)]
    return frame.assign(t=pd.Timestamp("2026-03-02") + pd.to_timedelta(elapsed, unit="h"))


def simulate_binary(
    gamma: float, units: int, steps: int, seed: int, beta: float = 1.5, mu: float = 0.0
) -> pd.DataFrame:
    """Return a log of random choices between two arms with log odds μ ± βz, where z is AR(1) with variance 1."""
    generator = np.random.default_rng(seed)
    eta, frame = _linear_predictors(generator, gamma, units, steps, beta)
    return frame.assign(r=(generator.random(eta.size) < 1.0 / (1.0 + np.exp(-mu - eta))).astype(float))


def simulate_counts(gamma: float, units: int, steps: int, seed: int, beta: float = 0.6) -> pd.DataFrame:
    """Return a log of random choices between two arms with counts: mean exp(±βz), variance mean + mean²/2."""
    generator = np.random.default_rng(seed)
    eta, frame = _linear_predictors(generator, gamma, units, steps, beta)
    return frame.assign(r=generator.poisson(np.exp(eta) * generator.gamma(2.0, 0.5, size=eta.size)).astype(float))


def _linear_predictors(
    generator: np.random.Generator, gamma: float, units: int, steps: int, beta: float
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return ±βz of each row, and the log without its rewards."""
    z = np.empty((units, steps))
    z[:, 0] = generator.normal(size=units)
    for t in range(1, steps):
        z[:, t] = gamma * z[:, t - 1] + np.sqrt(1.0 - gamma**2) * generator.normal(size=units)
    arm = generator.integers(2, size=(units, steps))
    frame = {"u": np.repeat(np.arange(units), steps), "t": np.tile(np.arange(steps), units), "a": arm.ravel()}
    return (beta * np.where(arm == 1, z, -z)).ravel(), pd.DataFrame(frame)
