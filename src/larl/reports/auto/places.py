"""Where Auto is looked at: worlds, and the studies that compare it with the others there."""

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
BIC, TUNED, KALMAN = "LARL (BIC)", "D-UCB, tuned", "Kalman, true parameters"
DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # of D-UCB, tuned
LONG = 2000  # steps over which forgetting is measured
FIRST_TEST_SEED = 2000  # of the test worlds; priors were chosen on others


@dataclass(frozen=True)
class Scope:
    """How much to run: trials of 200 steps in the paper's worlds; fewer elsewhere, in proportion."""

    trials: int = 2000
    seed: int = 0

    def of(self, horizon: int, part: float) -> int:
        """Trials of another horizon, for the same work."""
        return max(int(part * self.trials * 200 / horizon), 4)


class Place(NamedTuple):
    """A world, how long to play in it, and in how large a part of the trials (of a horizon of 200)."""

    world: World
    horizon: int = 200
    part: float = 0.1


def paper_worlds() -> dict[str, Place]:
    """The paper's, and the same from a stationary start."""
    first = {f"k = {k}": worlds.paper(k) for k in ORDERS}
    later = {f"{name}, stationary start": replace(world, start="stationary") for name, world in first.items()}
    return {name: Place(world, part=1.0) for name, world in (first | later).items()}


def test_worlds() -> dict[str, Place]:
    """Random worlds on which nothing was chosen: 2, 3, 4 arms; k = 1, 2, 3, 6; T = 200, 500, 2,000; two noises."""
    found = {}
    for i in range(12):
        arms, k, horizon = 2 + i % 3, (1, 2, 3, 6)[i // 3], (200, 200, 500, 200, 500, 2000, 200)[i % 7]
        draws = np.random.default_rng(FIRST_TEST_SEED + i)
        world = worlds.random(k, arms, FIRST_TEST_SEED + i, float(draws.uniform(0.6, 0.97)))
        beta, kind = list(world.beta), ("scaled", "common")[i % 2]
        if i % 4 == 3:
            beta[int(draws.integers(arms))] = 0.02
        sigma = float(draws.choice([0.5, 1.0, 2.0]))
        world = replace(world, beta=beta, mu=[0.5 * m for m in world.mu], sigma_r=sigma, noise=kind)
        name = f"{arms} arms, k = {k}, {kind} noise {sigma:g}{', one β ≈ 0' if i % 4 == 3 else ''}, T = {horizon}"
        found[name] = Place(world, horizon)
    return found


def hard_worlds() -> dict[str, Place]:
    """Where there is nothing to gain, or where the state is not one AR process; * those that nothing was chosen on."""
    base = replace(worlds.paper(1), start="stationary")
    two = LatentVAR(
        gammas=[[[0.9, 0.0], [0.0, 0.7]]],
        beta=[[1.0, 0.0], [-0.5, 0.8], [0.0, -1.0]],
        mu=[0.0, 0.0, 0.0],
        cov_z=[[1.0, 0.0], [0.0, 1.0]],
    )
    thirds = (0.0, 2.0 * math.pi / 3.0, 4.0 * math.pi / 3.0)
    still = LatentAR((0.0,), beta=(0.0, 0.0, 0.0), mu=(0.0, 0.5, 1.0), noise="common")
    return {
        "3 arms that stand still": Place(still, part=2.0),  # regret has a long tail here, and where means jump
        "change points (2%)": Place(ChangePoints(2, 0.02, 1.5), part=0.5),
        "change points (2%), 3 arms": Place(ChangePoints(3, 0.02, 1.5), part=0.5),
        "seasons of 50 steps, opposite": Place(Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi), 50.0)),
        "seasons of 50 steps, a quarter apart": Place(Seasonal((0.0, 0.0), (1.5, 1.5), (0.0, math.pi / 2), 50.0)),
        "a state of two components, 3 arms": Place(two),
        "k = 1, means 2 apart": Place(replace(base, mu=(0.0, 2.0))),
        "4 arms that stand still*": Place(LatentAR((0.0,), beta=(0.0,) * 4, mu=(0.3, 0.0, 0.6, 0.3), noise="common")),
        "change points (5%), 4 arms*": Place(ChangePoints(4, 0.05, 1.0)),
        "seasons of 24 steps, a third apart, 3 arms*": Place(Seasonal((0.0,) * 3, (1.0,) * 3, thirds, 24.0)),
    }


def tuning(places: Mapping[str, Place], scope: Scope, label: str) -> dict[str, Study]:
    """D-UCB with several discounts, at scale 1, on other seeds."""
    policies: dict[str, Policy] = {f"{d}": DiscountedUCB(d) for d in DISCOUNTS}
    return {
        f"tuning-{label}-{i:02d}": Study(
            {name: place.world}, policies, place.horizon, scope.of(place.horizon, 0.2), scope.seed + 1_000_003
        )
        for i, (name, place) in enumerate(places.items())
    }


def contest(places: Mapping[str, Place], tuned: dict[str, Result], scope: Scope, label: str) -> dict[str, Study]:
    """Auto and all it is compared with, one study a world."""
    found = {}
    for i, (name, place) in enumerate(places.items()):
        totals = tuned[f"tuning-{label}-{i:02d}"].total().mean(["trial", "world"]).to_series()
        policies: dict[str, Policy] = {
            BIC: LARLBIC(place.horizon // 5),
            "LARL, told s = k": LARL(max(place.world.k, 1)),
            "UCB": UCB(),
            TUNED: DiscountedUCB(float(str(totals.idxmin()))),
            "AdaptiveLARL": AdaptiveLARL(),
            "SharedLARL": SharedLARL(),
            "Auto": Auto(),
        }
        if isinstance(place.world, LatentAR | LatentVAR):
            policies[KALMAN] = KalmanOracle()
        trials = scope.of(place.horizon, place.part)
        found[f"{label}-{i:02d}"] = Study({name: place.world}, policies, place.horizon, trials, scope.seed)
    return found


def parts(scope: Scope) -> dict[str, Study]:
    """What each part of Auto brings, from a stationary start; and what forgetting costs."""
    policies: dict[str, Policy] = {
        BIC: LARLBIC(40),
        KALMAN: KalmanOracle(),
        "Auto": Auto(),
        "means only (alpha = 0)": Auto(alpha=0.0),
        "order 1 alone": Auto(orders=(1,)),
        "order 10 alone": Auto(orders=(10,)),
        "32 particles": Auto(particles=32),
        "memory of 50 steps": Auto(memory=50),
    }
    places = {name: place.world for name, place in list(paper_worlds().items())[3:]}
    long: dict[str, Policy] = {"memory 500": Auto(), f"memory {LONG:,} (full)": Auto(memory=LONG)}
    world = {"k = 5": replace(worlds.paper(5), start="stationary")}
    return {
        "ablation": Study(places, policies, 200, scope.of(200, 0.1), scope.seed),
        "forgetting": Study(world, long, LONG, scope.of(LONG, 0.15), scope.seed),
    }
