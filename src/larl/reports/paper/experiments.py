"""The studies of every experiment: those of the paper, and those it mentions but does not run."""

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
from larl.reports.grids import Grid, TunedSetting, choose_setting, point_name
from larl.reports.paper.settings import (
    ALL_BASELINES,
    AUTHORS,
    HORIZON,
    LARL_ALPHA,
    LARL_BIC,
    LARL_TUNED,
    THEORY,
    TUNED,
    authors_settings,
    grids,
    label,
    theory_settings,
)
from larl.simulation.result import Result
from larl.simulation.study import Study
from larl.worlds.base import World
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants import Burden, ChangePoints, HeavyTails, Seasonal

ORDERS = (1, 5, 10)  # the k of the paper's worlds
EXPONENTS = (0.5, 1.0, 1.5, 2.0)  # c in σ_z² = T^{c−2}
PAPER_S = (1, 5, 10, 15)  # the values of s that the paper tries
ALTERNATING, KALMAN = "LARL (BIC, alternating)", "Kalman, true parameters"


@dataclass(frozen=True)
class Scope:
    """How much to run."""

    trials: int = 1000
    seed: int = 0
    s_values: tuple[int, ...] = tuple(range(21))
    horizons: tuple[int, ...] = field(default=(100, 300, 1_000, 3_000, 10_000, 50_000))
    long_trials: int = 200  # maximum number of trials of experiment 3
    all_experiments: bool = False  # also run experiments 3 and 4

    def quick(self) -> "Scope":
        """Return a scope that takes about half a minute: fewer trials, fewer values of s."""
        return replace(self, trials=min(self.trials, 100), s_values=(0, 1, 2, 3, 5, 7, 10, 15, 20))


def world_name(k: int) -> str:
    """Return the name of the paper's world of order k."""
    return f"k = {k}"


def tuning_grids(world: LatentAR) -> dict[str, Grid]:
    """Return the tuning grids of the baselines, of LARL with s by BIC, and of LARL with each s of the paper."""
    all_grids = grids(world)
    for s in PAPER_S:
        all_grids[f"s = {s}"] = Grid((LARL_ALPHA,), lambda alpha, s=s: LARL(s, alpha=alpha))
    return all_grids


def tuning(scope: Scope) -> dict[str, Study]:
    """Return one study for each world and policy with every grid point, on seeds that no comparison uses."""
    trials, seed = max(scope.trials // 4, 2), scope.seed + 1_000_003
    return {
        f"tuning-k{k}-{number}": Study(
            {world_name(k): world}, {point_name(policy, p): grid.build(*p) for p in grid.points}, HORIZON, trials, seed
        )
        for k, world in ((k, worlds.paper(k)) for k in ORDERS)
        for number, (policy, grid) in enumerate(tuning_grids(world).items())
    }


def tuned_settings(k: int, tuned: Mapping[str, Result]) -> dict[str, TunedSetting]:
    """Return the setting with the smallest mean regret on the tuning seeds, for each tuned policy."""
    best = {}
    for number, (policy, grid) in enumerate(tuning_grids(worlds.paper(k)).items()):
        means = tuned[f"tuning-k{k}-{number}"].total().mean(["trial", "world"]).to_series().to_dict()
        best[policy] = choose_setting(policy, grid, means.__getitem__)
    return best


def paper_policies(world: LatentAR) -> dict[str, Policy]:
    """Return LARL with both kinds of exploration, the untuned baselines, and the Kalman filter."""
    explore = HORIZON // 5
    return (
        {LARL_BIC: LARLBIC(explore), ALTERNATING: LARLBIC(explore + 1, explore_with="alternate")}
        | {label(baseline, AUTHORS): policy for baseline, policy in authors_settings(world).items()}
        | {label(baseline, THEORY): policy for baseline, policy in theory_settings(world).items()}
        | {KALMAN: KalmanOracle()}
    )


def baselines(scope: Scope, tuned: Mapping[str, Result]) -> dict[str, Study]:
    """Return the studies of experiment 1 (§5): LARL against the baselines in each of their settings."""
    studies = {}
    for k in ORDERS:
        world, best = worlds.paper(k), tuned_settings(k, tuned)
        policies = paper_policies(world) | {label(baseline, TUNED): best[baseline].policy for baseline in ALL_BASELINES}
        policies[LARL_TUNED] = best[LARL_BIC].policy
        studies[f"baselines-k{k}"] = Study({world_name(k): world}, policies, HORIZON, scope.trials, scope.seed)
    return studies


def tuned_lookback(scope: Scope, tuned: Mapping[str, Result]) -> dict[str, Study]:
    """Return the studies of experiment 2 with tuning: LARL with each s of the paper and its best α."""
    studies = {}
    for k in ORDERS:
        best = tuned_settings(k, tuned)
        policies = {f"s = {s}": best[f"s = {s}"].policy for s in PAPER_S}
        studies[f"lookback-tuned-k{k}"] = Study(
            {world_name(k): worlds.paper(k)}, policies, HORIZON, scope.trials, scope.seed
        )
    return studies


def other_policies(scope: Scope) -> dict[str, Study]:
    """Return the study of policies that are not in the paper, on the first trials only because they are slower."""
    policies: dict[str, Policy] = {"Auto": Auto(), "SharedLARL": SharedLARL(), "AdaptiveLARL": AdaptiveLARL()}
    paper_worlds = {world_name(k): worlds.paper(k) for k in ORDERS}
    # "beyond" is the name of the data file: beyond the paper.
    return {"beyond": Study(paper_worlds, policies, HORIZON, min(scope.trials, 100), scope.seed)}


def lookback(scope: Scope) -> dict[str, Study]:
    """Return the study of experiment 2 (App. E): LARL with every s in the paper's worlds."""
    policies: dict[str, Policy] = {f"s = {s}": LARL(s) for s in scope.s_values}
    paper_worlds = {world_name(k): worlds.paper(k) for k in ORDERS}
    return {"lookback": Study(paper_worlds, policies, HORIZON, scope.trials, scope.seed)}


def noise_name(k: int, noise: str) -> str:
    """Return the name of a world of the noise experiment."""
    return f"k = {k}, {noise} noise"


def noise_structure(scope: Scope) -> dict[str, Study]:
    """Return the study that tests whether LARL needs noise in proportion to |β_a|.

    Its worlds are the paper's with β = (−0.3, 1), with scaled and with common noise. In the paper's own worlds
    |β_a| = 1 for both arms, so the two kinds of noise are the same.
    """
    noise_worlds = {
        noise_name(k, noise): replace(worlds.paper(k), beta=(-0.3, 1.0), noise=noise)
        for k in ORDERS
        for noise in ("scaled", "common")
    }
    policies: dict[str, Policy] = {LARL_BIC: LARLBIC(HORIZON // 5), label("Stationary", AUTHORS): UCB()}
    policies[KALMAN] = KalmanOracle()
    return {"noise": Study(noise_worlds, policies, HORIZON, scope.trials, scope.seed)}


def shrinking_world(c: float, horizon: int) -> LatentAR:
    """Return a world with σ_z² = T^{c−2} in which sub-linear regret requires learning.

    Two arms have means ±z, the third 0.1z − 1. Random choice has a regret of more than T/3. A policy that
    filters z has regret in proportion to σ_z T = T^{c/2}.
    """
    return LatentAR(gammas=(0.9,), beta=(-1.0, 1.0, 0.1), mu=(0.0, 0.0, -1.0), sigma_z=horizon ** ((c - 2.0) / 2.0))


def sublinear(scope: Scope) -> dict[str, Study]:
    """Return the studies of experiment 3: σ_z² = T^{c−2} over growing horizons."""
    policies: dict[str, Policy] = {"LARL s = 1": LARL(1), "Kalman": KalmanOracle(), "UCB": UCB(), "random": Random()}
    trials = min(scope.long_trials, scope.trials)
    return {
        f"sublinear-T{horizon}": Study(
            {f"c = {c:g}": shrinking_world(c, horizon) for c in EXPONENTS},
            policies,
            horizon,
            trials,
            scope.seed,
            keep="summary",
        )
        for horizon in scope.horizons
    }


def robustness_worlds() -> dict[str, tuple[World, int]]:
    """Return the worlds and horizons of experiment 4: the paper's k = 1 world with one change, and other kinds."""
    base = LatentAR(gammas=(0.9,), beta=(-1.0, 1.0), mu=(0.0, 0.0))
    slopes = {
        5: np.array([-1.0, -0.6, -0.2, 0.4, 1.0]),
        10: np.linspace(-1.0, 1.0, 10),
    }  # no β is 0, because such an arm gives no information on z
    five, ten = (LatentAR((0.9,), beta=b.tolist(), mu=(1.0 - b**2).tolist()) for b in slopes.values())
    return {
        "as defined": (base, HORIZON),
        "common noise, β = (−0.3, 1)": (replace(base, beta=(-0.3, 1.0), noise="common"), HORIZON),
        "reward noise 0.1": (replace(base, sigma_r=0.1), HORIZON),
        "reward noise 5": (replace(base, sigma_r=5.0), HORIZON),
        "heavy tails (t, 3 df)": (HeavyTails(base, 3.0), HORIZON),
        "burden": (Burden(base, effect=(0.5, -0.5)), HORIZON),
        "change points (2%)": (ChangePoints(2, 0.02, 1.5), HORIZON),
        "seasonal (period 50)": (Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi), 50.0), HORIZON),
        "5 arms": (five, HORIZON),
        "10 arms": (ten, HORIZON),
        "2,000 steps": (base, 2_000),
    }


def robustness(scope: Scope) -> dict[str, Study]:
    """Return the studies of experiment 4: worlds that violate the paper's assumptions."""
    studies: dict[str, Study] = {}
    for name, (world, horizon) in robustness_worlds().items():
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
        study = Study({name: world}, policies, horizon, scope.trials, scope.seed, keep="summary")
        studies[f"robustness-{len(studies):02d}"] = study
    return studies
