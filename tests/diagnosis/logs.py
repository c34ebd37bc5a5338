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
