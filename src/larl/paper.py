"""The paper's first comparison (§5): LARL and its baselines at k = 1, 5, 10."""

import math

import numpy as np

from larl import worlds
from larl.comparison import compare
from larl.policies import (
    ARUCB,
    LARLBIC,
    UCB,
    DiscountedUCB,
    KalmanOracle,
    Policy,
    Rexp3,
    SlidingWindowUCB,
)
from larl.result import Result, join
from larl.world import LatentAR

ORDERS = (1, 5, 10)
HORIZON = 200


def reward_range(world: LatentAR) -> tuple[float, float]:
    """Where the rewards of a world lie in the long run: within three standard deviations of every arm's mean."""
    centre = np.array(world.mu) + np.array(world.beta) * world.stationary_mean
    spread = 3.0 * np.sqrt(np.square(world.beta) * world.stationary_var + world.sd**2)
    return float((centre - spread).min()), float((centre + spread).max())


def variation(world: LatentAR, horizon: int) -> float:
    """E Σ_t max_a |mean_t(a) − mean_{t−1}(a)| over a horizon, in units of the width of `reward_range`."""
    lag_one = float(np.array(world.gammas) @ world.stationary_cov[0])
    step = math.sqrt(2.0 * max(world.stationary_var - lag_one, 0.0)) * math.sqrt(2.0 / math.pi)
    low, high = reward_range(world)
    return horizon * step * float(np.abs(world.beta).max()) / (high - low)


def policies(world: LatentAR, horizon: int) -> dict[str, Policy]:
    """LARL as the paper runs it and its baselines, and what they should be measured against.

    Baselines get what their own theory asks for: the window 2√(T log T) of Garivier & Moulines for one change, and the
    true total variation for Rexp3. Discounted UCB with factor 0.9 and the Kalman filter are not in the paper's figure.
    """
    explore = horizon // 5
    return {
        "LARL (BIC)": LARLBIC(explore),
        "LARL (BIC, alternating)": LARLBIC(explore + 1, explore_with="alternate"),
        "Stationary": UCB(),
        "AR UCB": ARUCB(world.k),
        "SW UCB": SlidingWindowUCB(round(2.0 * math.sqrt(horizon * math.log(horizon)))),
        "Rexp3": Rexp3(variation(world, horizon), reward_range(world)),
        "D-UCB 0.9": DiscountedUCB(0.9),
        "Kalman, true parameters": KalmanOracle(),
    }


def first_comparison(
    trials: int = 1000, seed: int = 0, *, threads: int | None = None, progress: bool | None = None
) -> Result:
    """The policies of §5 in the paper's three worlds."""
    return join(
        compare(
            policies(worlds.paper(k), HORIZON), {f"k = {k}": worlds.paper(k)}, horizon=HORIZON, trials=trials,
            seed=seed, threads=threads, progress=progress,
        )
        for k in ORDERS
    )  # fmt: skip
