"""The paper's experiments, and those it only mentions, as data: every one a set of studies."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from larl import worlds
from larl.policies import (
    ARUCB,
    LARL,
    LARLBIC,
    UCB,
    AdaptiveLARL,
    Auto,
    DiscountedUCB,
    KalmanOracle,
    Policy,
    Random,
    Rexp3,
    SharedLARL,
    SlidingWindowUCB,
)  # fmt: skip
from larl.result import Result
from larl.study import Study
from larl.variants import Burden, ChangePoints, HeavyTails, Seasonal
from larl.world import LatentAR, World

ORDERS = (1, 5, 10)
HORIZON = 200
EXPONENTS = (0.5, 1.0, 1.5, 2.0)  # the c of σ_z² = T^{c−2}
WINDOWS = (3, 5, 10, 20, 40, 65, 100)
DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
BATCHES = (5, 10, 20, 50, 100, 200)
TUNED_NAMES = ("SW UCB, tuned", "D-UCB, tuned", "Rexp3, tuned")


@dataclass(frozen=True)
class Scope:
    """How much to run."""

    trials: int = 1000
    seed: int = 0
    every_s: tuple[int, ...] = tuple(range(21))
    horizons: tuple[int, ...] = field(default=(100, 300, 1_000, 3_000, 10_000, 50_000))
    long_trials: int = 200
    everything: bool = False  # also experiments 3 and 4

    def quick(self) -> "Scope":
        """A look at all of it in half a minute: fewer trials, fewer s."""
        return replace(self, trials=min(self.trials, 100), every_s=(0, 1, 2, 3, 5, 7, 10, 15, 20))


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


def variation_of_batch(batch: int, arms: int, horizon: int) -> float:
    """The variation for which Rexp3 restarts every `batch` steps."""
    return float(horizon * math.sqrt(arms * math.log(arms)) / (batch - 0.5) ** 1.5)


def paper_policies(world: LatentAR) -> dict[str, Policy]:
    """LARL in both modes of exploration and the paper's baselines, and the filter that knows all parameters.

    The paper gives no window, scale or variation. Baselines get what their own theory asks for: the window 2√(T log T)
    of Garivier & Moulines for one change and the width of the rewards' range, and for Rexp3 the true total variation.
    """
    explore, (low, high) = HORIZON // 5, reward_range(world)
    return {
        "LARL (BIC)": LARLBIC(explore),
        "LARL (BIC, alternating)": LARLBIC(explore + 1, explore_with="alternate"),
        "Stationary": UCB(),
        "AR UCB": ARUCB(world.k),
        "SW UCB": SlidingWindowUCB(round(2.0 * math.sqrt(HORIZON * math.log(HORIZON))), scale=high - low),
        "Rexp3": Rexp3(variation(world, HORIZON), (low, high)),
        "Kalman, true parameters": KalmanOracle(),
    }


def candidates(world: LatentAR) -> dict[str, Policy]:
    """What the tuned baselines are chosen from."""
    low, high = reward_range(world)
    return (
        {f"SW UCB, tuned|{window}": SlidingWindowUCB(window) for window in WINDOWS}
        | {f"D-UCB, tuned|{discount}": DiscountedUCB(discount) for discount in DISCOUNTS}
        | {f"Rexp3, tuned|{b}": Rexp3(variation_of_batch(b, 2, HORIZON), (low, high)) for b in BATCHES}
    )


def name(k: int) -> str:
    """How a world of the paper is called."""
    return f"k = {k}"


def tuning(scope: Scope) -> dict[str, Study]:
    """Candidates for the tuned baselines, on seeds of their own."""
    trials, seed = max(scope.trials // 2, 2), scope.seed + 1_000_003
    return {
        f"tuning-k{k}": Study({name(k): worlds.paper(k)}, candidates(worlds.paper(k)), HORIZON, trials, seed)
        for k in ORDERS
    }


def best_settings(tuned: Result) -> dict[str, str]:
    """Of each kind of tuned baseline, the setting with the least mean regret."""
    means = tuned.total("k").mean(["trial", "world"]).to_series()
    best = [means[means.index.str.startswith(kind + "|")].idxmin() for kind in TUNED_NAMES]
    return dict(zip(TUNED_NAMES, (str(each).partition("|")[2] for each in best), strict=True))


def baselines(scope: Scope, tuned: dict[str, Result]) -> dict[str, Study]:
    """Experiment 1 (§5): LARL against the baselines, these also at their best."""
    return {
        f"baselines-k{k}": Study(
            {name(k): world},
            paper_policies(world)
            | {
                kind: candidates(world)[f"{kind}|{best}"] for kind, best in best_settings(tuned[f"tuning-k{k}"]).items()
            },
            HORIZON,
            scope.trials,
            scope.seed,
        )
        for k, world in ((k, worlds.paper(k)) for k in ORDERS)
    }


def beyond(scope: Scope) -> dict[str, Study]:
    """Policies that the paper does not have, on the luck of the first trials (they take longer)."""
    policies: dict[str, Policy] = {"Auto": Auto(), "SharedLARL": SharedLARL(), "AdaptiveLARL": AdaptiveLARL()}
    places = {name(k): worlds.paper(k) for k in ORDERS}
    return {"beyond": Study(places, policies, HORIZON, min(scope.trials, 100), scope.seed)}


def lookback(scope: Scope) -> dict[str, Study]:
    """Experiment 2 (App. E): LARL for every s, in the paper's worlds."""
    policies: dict[str, Policy] = {f"s = {s}": LARL(s) for s in scope.every_s}
    places = {name(k): worlds.paper(k) for k in ORDERS}
    return {"lookback": Study(places, policies, HORIZON, scope.trials, scope.seed)}


def shrinking_world(c: float, horizon: int) -> LatentAR:
    """A world in which σ_z² = T^{c−2} is a claim about learning.

    Two arms ±z that only knowledge of z tells apart, and a third that is worse by 1 whatever z is. So choosing at
    random costs a third of T and more, while whoever filters z pays in proportion to σ_z T = T^{c/2}.
    """
    return LatentAR(gammas=(0.9,), beta=(-1.0, 1.0, 0.1), mu=(0.0, 0.0, -1.0), sigma_z=horizon ** ((c - 2.0) / 2.0))


def sublinear(scope: Scope) -> dict[str, Study]:
    """Experiment 3: σ_z² = T^{c−2} over growing horizons."""
    policies: dict[str, Policy] = {"LARL s = 1": LARL(1), "Kalman": KalmanOracle(), "UCB": UCB(), "random": Random()}
    trials = min(scope.long_trials, scope.trials)
    return {
        f"sublinear-T{horizon}": Study(
            {f"c = {c:g}": shrinking_world(c, horizon) for c in EXPONENTS}, policies, horizon, trials, scope.seed,
            "summary",
        )
        for horizon in scope.horizons
    }  # fmt: skip


def hard_worlds() -> dict[str, tuple[World, int]]:
    """Experiment 4: the paper's k = 1 world with one assumption changed, and worlds of another kind; with horizons."""
    base = LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
    slopes = {
        5: np.array([-1.0, -0.6, -0.2, 0.4, 1.0]),
        10: np.linspace(-1.0, 1.0, 10),
    }  # none 0: that says nothing of z
    five, ten = (LatentAR((0.9,), beta=b.tolist(), mu=(1.0 - b**2).tolist()) for b in slopes.values())
    return {
        "as defined": (base, HORIZON),
        "common noise, β = (−0.3, 1)": (replace(base, beta=(-0.3, 1.0), noise="common"), HORIZON),
        "reward noise 0.1": (replace(base, sigma_r=0.1), HORIZON),
        "reward noise 5": (replace(base, sigma_r=5.0), HORIZON),
        "heavy tails (t, 3 df)": (HeavyTails(base, 3.0), HORIZON),
        "burden": (Burden(base, effect=(0.5, -0.5)), HORIZON),
        "change points (2%)": (ChangePoints(2, 0.02, 1.5), HORIZON),
        "seasons (period 50)": (Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi), 50.0), HORIZON),
        "5 arms": (five, HORIZON),
        "10 arms": (ten, HORIZON),
        "2,000 steps": (base, 2_000),
    }


def robustness(scope: Scope) -> dict[str, Study]:
    """Experiment 4: where the assumptions fail."""
    found: dict[str, Study] = {}
    for place, (world, horizon) in hard_worlds().items():
        policies: dict[str, Policy] = {
            "LARL s = 1": LARL(1),
            "LARL s = 5": LARL(5),
            "LARL (BIC)": LARLBIC(horizon // 5),
            "UCB": UCB(),
            "D-UCB 0.9": DiscountedUCB(0.9),
            "SW UCB 20": SlidingWindowUCB(20),
            "random": Random(),
        }
        if isinstance(world, LatentAR | HeavyTails):
            policies["Kalman"] = KalmanOracle()
        study = Study({place: world}, policies, horizon, scope.trials, scope.seed, "summary")
        found[f"robustness-{len(found):02d}"] = study
    return found
