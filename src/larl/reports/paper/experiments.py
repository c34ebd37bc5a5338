"""The paper's experiments, and those it only mentions, as data: every one a set of studies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from larl import worlds
from larl.policies import (
    LARL,
    LARLBIC,
    UCB,
    AdaptiveLARL,
    Auto,
    DiscountedUCB,
    KalmanOracle,
    Policy,
    Random,
    SharedLARL,
    SlidingWindowUCB,
)
from larl.reports.paper.settings import (
    ALL,
    AUTHORS,
    HORIZON,
    LARL_ALPHA,
    LARL_BIC,
    LARL_TUNED,
    THEORY,
    TUNED,
    Choice,
    Grid,
    authors_settings,
    candidate,
    choose,
    grids,
    label,
    theory_settings,
)
from larl.simulation.result import Result
from larl.simulation.study import Study
from larl.worlds.base import World
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants import Burden, ChangePoints, HeavyTails, Seasonal

ORDERS = (1, 5, 10)
EXPONENTS = (0.5, 1.0, 1.5, 2.0)  # the c of σ_z² = T^{c−2}
PAPER_S = (1, 5, 10, 15)  # the s that the paper tries
ALTERNATING, KALMAN = "LARL (BIC, alternating)", "Kalman, true parameters"


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


def name(k: int) -> str:
    """How a world of the paper is called."""
    return f"k = {k}"


def tuning_grids(world: LatentAR) -> dict[str, Grid]:
    """What is tuned: the baselines, LARL with s by BIC, and LARL for each s that the paper tries."""
    found = grids(world)
    for s in PAPER_S:
        found[f"s = {s}"] = Grid((LARL_ALPHA,), lambda alpha, s=s: LARL(s, alpha=alpha))
    return found


def tuning(scope: Scope) -> dict[str, Study]:
    """Every point of every grid, on seeds of their own; one study a world and policy."""
    trials, seed = max(scope.trials // 4, 2), scope.seed + 1_000_003
    return {
        f"tuning-k{k}-{number}": Study(
            {name(k): world}, {candidate(kind, p): grid.build(*p) for p in grid.points}, HORIZON, trials, seed
        )
        for k, world in ((k, worlds.paper(k)) for k in ORDERS)
        for number, (kind, grid) in enumerate(tuning_grids(world).items())
    }


def best_settings(k: int, tuned: Mapping[str, Result]) -> dict[str, Choice]:
    """For each policy that is tuned, the setting with the least mean regret on the tuning seeds."""
    found = {}
    for number, (kind, grid) in enumerate(tuning_grids(worlds.paper(k)).items()):
        means = tuned[f"tuning-k{k}-{number}"].total().mean(["trial", "world"]).to_series().to_dict()
        found[kind] = choose(kind, grid, means.__getitem__)
    return found


def paper_policies(world: LatentAR) -> dict[str, Policy]:
    """LARL in both modes of exploration, the baselines as their authors and their theory set them, and the filter."""
    explore = HORIZON // 5
    return (
        {LARL_BIC: LARLBIC(explore), ALTERNATING: LARLBIC(explore + 1, explore_with="alternate")}
        | {label(kind, AUTHORS): policy for kind, policy in authors_settings(world).items()}
        | {label(kind, THEORY): policy for kind, policy in theory_settings(world).items()}
        | {KALMAN: KalmanOracle()}
    )


def baselines(scope: Scope, tuned: Mapping[str, Result]) -> dict[str, Study]:
    """Experiment 1 (§5): LARL against the baselines, in each of their settings."""
    found = {}
    for k in ORDERS:
        world, best = worlds.paper(k), best_settings(k, tuned)
        policies = paper_policies(world) | {label(kind, TUNED): best[kind].policy for kind in ALL}
        policies[LARL_TUNED] = best[LARL_BIC].policy
        found[f"baselines-k{k}"] = Study({name(k): world}, policies, HORIZON, scope.trials, scope.seed)
    return found


def tuned_lookback(scope: Scope, tuned: Mapping[str, Result]) -> dict[str, Study]:
    """Experiment 2 once more: LARL for the s of the paper, each with its best α."""
    found = {}
    for k in ORDERS:
        best = best_settings(k, tuned)
        policies = {f"s = {s}": best[f"s = {s}"].policy for s in PAPER_S}
        found[f"lookback-tuned-k{k}"] = Study({name(k): worlds.paper(k)}, policies, HORIZON, scope.trials, scope.seed)
    return found


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


def noise_name(k: int, noise: str) -> str:
    """How a world of the noise experiment is called."""
    return f"k = {k}, {noise} noise"


def noise_structure(scope: Scope) -> dict[str, Study]:
    """Does LARL need noise in proportion to |β_a|? The paper's worlds with β = (−0.3, 1), with it and without.

    In the paper's own worlds |β_a| = 1 for both arms, so the two kinds of noise are the same there.
    """
    places = {
        noise_name(k, noise): replace(worlds.paper(k), beta=(-0.3, 1.0), noise=noise)
        for k in ORDERS
        for noise in ("scaled", "common")
    }
    policies: dict[str, Policy] = {LARL_BIC: LARLBIC(HORIZON // 5), label("Stationary", AUTHORS): UCB()}
    policies[KALMAN] = KalmanOracle()
    return {"noise": Study(places, policies, HORIZON, scope.trials, scope.seed)}


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
            {f"c = {c:g}": shrinking_world(c, horizon) for c in EXPONENTS},
            policies,
            horizon,
            trials,
            scope.seed,
            "summary",
        )
        for horizon in scope.horizons
    }


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
