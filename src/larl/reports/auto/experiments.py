"""The worlds and studies of the evaluation of Auto."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from larl import worlds
from larl.policies import LARL, LARLBIC, UCB, AdaptiveLARL, Auto, DiscountedUCB, KalmanOracle, Policy, SharedLARL
from larl.simulation.result import Result
from larl.simulation.study import Study
from larl.worlds.base import World
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_var import LatentVAR
from larl.worlds.variants import ChangePoints, Seasonal

ORDERS = (1, 5, 10)
LARL_BIC, DUCB_TUNED, KALMAN = "LARL (BIC)", "D-UCB, tuned", "Kalman, true parameters"
LARL_K = "LARL, s = k"
DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # the tuning grid of D-UCB
LONG_HORIZON = 2000  # horizon of the study of limited memory
FIRST_TEST_SEED = 2000  # seed of the first test world; the priors of Auto were chosen with other seeds


@dataclass(frozen=True)
class Scope:
    """The number of trials of 200 steps in the paper's worlds, and the seed. Other settings have fewer trials."""

    trials: int = 2000
    seed: int = 0

    def trials_for(self, horizon: int, fraction: float) -> int:
        """Return the number of trials that simulate a fraction of the steps, at another horizon."""
        return max(int(fraction * self.trials * 200 / horizon), 4)


class Setting(NamedTuple):
    """A world, a horizon in steps, and the simulated steps as a fraction of those in a world of the paper."""

    world: World
    horizon: int = 200
    fraction: float = 0.1


def paper_worlds() -> dict[str, Setting]:
    """Return the paper's worlds, and the same from a stationary start."""
    paper = {f"k = {k}": worlds.paper(k) for k in ORDERS}
    stationary = {f"{name}, stationary start": replace(world, start="stationary") for name, world in paper.items()}
    return {name: Setting(world, fraction=1.0) for name, world in (paper | stationary).items()}


def held_out_worlds() -> dict[str, Setting]:
    """Return random worlds that were not used to choose Auto's priors: 2 to 4 arms, k = 1, 2, 3, 6, two noises."""
    settings = {}
    for i in range(12):
        arms, k, horizon = 2 + i % 3, (1, 2, 3, 6)[i // 3], (200, 200, 500, 200, 500, 2000, 200)[i % 7]
        rng = np.random.default_rng(FIRST_TEST_SEED + i)
        world = worlds.random(k, arms, FIRST_TEST_SEED + i, float(rng.uniform(0.6, 0.97)))
        beta, kind = list(world.beta), ("scaled", "common")[i % 2]
        if i % 4 == 3:
            beta[int(rng.integers(arms))] = 0.02
        sigma = float(rng.choice([0.5, 1.0, 2.0]))
        world = replace(world, beta=beta, mu=[0.5 * m for m in world.mu], sigma_r=sigma, noise=kind)
        name = f"{arms} arms, k = {k}, {kind} noise {sigma:g}{', one β ≈ 0' if i % 4 == 3 else ''}, T = {horizon}"
        settings[name] = Setting(world, horizon)
    return settings


def misspecified_worlds() -> dict[str, Setting]:
    """Return worlds without a state or without an AR state; * marks those not used to choose priors."""
    base = replace(worlds.paper(1), start="stationary")
    two = LatentVAR(
        gammas=[[[0.9, 0.0], [0.0, 0.7]]],
        beta=[[1.0, 0.0], [-0.5, 0.8], [0.0, -1.0]],
        mu=[0.0, 0.0, 0.0],
        cov_z=[[1.0, 0.0], [0.0, 1.0]],
    )
    thirds = (0.0, 2.0 * math.pi / 3.0, 4.0 * math.pi / 3.0)
    constant = LatentAR((0.0,), beta=(0.0, 0.0, 0.0), mu=(0.0, 0.5, 1.0), noise="common")
    return {
        # More trials where the distribution of regret has a long tail: constant means and change points.
        "constant means, 3 arms": Setting(constant, fraction=2.0),
        "change points (2%)": Setting(ChangePoints(2, 0.02, 1.5), fraction=0.5),
        "change points (2%), 3 arms": Setting(ChangePoints(3, 0.02, 1.5), fraction=0.5),
        "seasonal, period 50, opposite phases": Setting(Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi), 50.0)),
        "seasonal, period 50, a quarter apart": Setting(Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi / 2), 50.0)),
        "two-dimensional state, 3 arms": Setting(two),
        "k = 1, means 2 apart": Setting(replace(base, mu=(0.0, 2.0))),
        "constant means, 4 arms*": Setting(LatentAR((0.0,), beta=(0.0,) * 4, mu=(0.3, 0.0, 0.6, 0.3), noise="common")),
        "change points (5%), 4 arms*": Setting(ChangePoints(4, 0.05, 1.0)),
        "seasonal, period 24, a third apart, 3 arms*": Setting(Seasonal((0.0,) * 3, (1.0,) * 3, thirds, 24.0)),
    }


def tuning(settings: Mapping[str, Setting], scope: Scope, group: str) -> dict[str, Study]:
    """Return one study for each setting: D-UCB with several discounts and scale 1, on other seeds."""
    policies: dict[str, Policy] = {f"{d}": DiscountedUCB(d) for d in DISCOUNTS}
    return {
        f"tuning-{group}-{i:02d}": Study(
            {name: setting.world},
            policies,
            setting.horizon,
            scope.trials_for(setting.horizon, 0.2),
            scope.seed + 1_000_003,
        )
        for i, (name, setting) in enumerate(settings.items())
    }


def comparison(settings: Mapping[str, Setting], tuned: dict[str, Result], scope: Scope, group: str) -> dict[str, Study]:
    """Return one study for each setting: Auto and the policies it is compared with."""
    studies = {}
    for i, (name, setting) in enumerate(settings.items()):
        totals = tuned[f"tuning-{group}-{i:02d}"].total().mean(["trial", "world"]).to_series()
        policies: dict[str, Policy] = {
            LARL_BIC: LARLBIC(setting.horizon // 5),
            LARL_K: LARL(max(setting.world.k, 1)),
            "UCB": UCB(),
            DUCB_TUNED: DiscountedUCB(float(str(totals.idxmin()))),
            "AdaptiveLARL": AdaptiveLARL(),
            "SharedLARL": SharedLARL(),
            "Auto": Auto(),
        }
        if isinstance(setting.world, LatentAR | LatentVAR):
            policies[KALMAN] = KalmanOracle()
        trials = scope.trials_for(setting.horizon, setting.fraction)
        studies[f"{group}-{i:02d}"] = Study({name: setting.world}, policies, setting.horizon, trials, scope.seed)
    return studies


def ablations(scope: Scope) -> dict[str, Study]:
    """Return the study of Auto's variants from a stationary start, and the study of limited memory."""
    policies: dict[str, Policy] = {
        LARL_BIC: LARLBIC(40),
        KALMAN: KalmanOracle(),
        "Auto": Auto(),
        "means only (alpha = 0)": Auto(alpha=0.0),
        "order 1 only": Auto(orders=(1,)),
        "order 10 only": Auto(orders=(10,)),
        "32 particles": Auto(particles=32),
        "memory of 50 steps": Auto(memory=50),
    }
    start_worlds = {name: setting.world for name, setting in list(paper_worlds().items())[3:]}
    memories: dict[str, Policy] = {"memory 500": Auto(), f"memory {LONG_HORIZON:,} (full)": Auto(memory=LONG_HORIZON)}
    world = {"k = 5": replace(worlds.paper(5), start="stationary")}
    return {
        "ablation": Study(start_worlds, policies, 200, scope.trials_for(200, 0.1), scope.seed),
        "memory": Study(world, memories, LONG_HORIZON, scope.trials_for(LONG_HORIZON, 0.15), scope.seed),
    }
