"""Auto where its first assumptions fail: rewards that are not normal, outliers, changed parameters, constant arms."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from larl import worlds
from larl.policies import (
    UCB,
    AdaptiveLARL,
    Auto,
    DiscountedUCB,
    FilterOracle,
    KalmanOracle,
    Policy,
    Random,
    SharedLARL,
    ThompsonSampling,
)
from larl.reports.auto.experiments import KALMAN, Scope
from larl.simulation.result import Result
from larl.simulation.study import Study
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants import HeavyTails, Outliers, ParameterChange

DISCOUNTED, FILTER, UCB_2, FRESH = "D-UCB (best of 12)", "particle filter, true parameters", "UCB, α = 2", "Auto, fresh"
# Settings of D-UCB; the best one is chosen with hindsight in each world, which favours D-UCB.
SETTINGS = {f"D-UCB {d} {s}": DiscountedUCB(d, scale=s) for d in (0.5, 0.8, 0.95, 0.99) for s in (0.1, 0.3, 1.0)}
CHANGE, THREE = 500, LatentAR((0.9,), beta=(-1.0, 0.4, 1.0), mu=(0.0,) * 3, noise="common", start="stationary")
STILL_ARMS, STILL_HORIZONS = (2, 4, 8), (200, 1000)


def constant_arms(arms: int) -> LatentAR:
    """Return a world with constant means: the best arm is 0.5 above the others, which are evenly spread over 0.5."""
    mu = (*np.linspace(0.0, 0.5, arms - 1).tolist(), 1.0)
    return LatentAR((0.0,), beta=(0.0,) * arms, mu=mu, noise="common")


def changes() -> dict[str, LatentAR]:
    """Return what the world of three arms becomes at step CHANGE."""
    return {
        "two of three β change their sign": replace(THREE, beta=(1.0, 0.4, -1.0)),
        "γ changes from 0.9 to −0.5": replace(THREE, gammas=(-0.5,)),
    }


def studies(scope: Scope) -> dict[str, Study]:
    """Return all studies by name."""
    adaptive: dict[str, Policy] = {"AdaptiveLARL": AdaptiveLARL(), "SharedLARL": SharedLARL(), "Auto": Auto()}
    families: dict[str, Policy] = {"Random": Random(), **SETTINGS, **adaptive, FILTER: FilterOracle()}
    robust: dict[str, Policy] = {**adaptive, KALMAN: KalmanOracle()}
    still: dict[str, Policy] = {UCB_2: UCB(alpha=2.0), "Thompson": ThompsonSampling(), **adaptive}
    outliers = {
        "no outliers": THREE,
        "5% outliers, 20 standard deviations": Outliers(THREE),
        "Student-t noise, 3 df": HeavyTails(THREE, df=3.0),
    }
    changed = {name: ParameterChange(THREE, later=later, at=CHANGE) for name, later in changes().items()}
    result = {
        "families": Study(worlds.non_gaussian(), families, 200, scope.trials_for(200, 0.5), scope.seed),
        "outliers": Study(outliers, robust, 400, scope.trials_for(400, 0.5), scope.seed),
        "changes": Study(changed, adaptive, 2 * CHANGE, scope.trials_for(2 * CHANGE, 0.5), scope.seed),
        "changes-fresh": Study(changes(), {"Auto": Auto()}, CHANGE, scope.trials_for(2 * CHANGE, 0.5), scope.seed + 1),
    }
    for horizon in STILL_HORIZONS:
        settings = {f"{arms} arms, T = {horizon}": constant_arms(arms) for arms in STILL_ARMS}
        result |= {
            f"constant-{arms}-{horizon}": Study(
                {name: world}, still, horizon, scope.trials_for(horizon, 0.5), scope.seed
            )
            for arms, (name, world) in zip(STILL_ARMS, settings.items(), strict=True)
        }
    return result


def _mean(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) / math.sqrt(values.size):.1f}"


def family_shares(result: Result) -> pd.DataFrame:
    """Return the share of the gap from random play to the particle filter that each policy closes, by world."""
    rows = {}
    for world in result.worlds:
        total = result.total("k").sel(world=world)
        worst, best = (total.sel(policy=each).values for each in ("Random", FILTER))
        gap, row = float((worst - best).mean()), {}
        settings = [total.sel(policy=each).values for each in SETTINGS]
        regrets = {DISCOUNTED: min(settings, key=np.mean)}
        regrets |= {each: total.sel(policy=each).values for each in ("AdaptiveLARL", "SharedLARL", "Auto")}
        for policy, regret in regrets.items():
            share = float((worst - regret).mean()) / gap
            error = ((worst - regret) - share * (worst - best)).std(ddof=1) / math.sqrt(worst.size) / gap
            row[policy] = (100.0 * share, 100.0 * float(error))
        rows[world] = row
    return pd.DataFrame(rows).T


def outlier_table(result: Result) -> pd.DataFrame:
    """Return mean total regret by world and policy, and the largest regret of a trial of Auto, in medians."""
    rows = {}
    for world in result.worlds:
        total = result.total("k").sel(world=world)
        row = {str(policy): _mean(total.sel(policy=policy).values) for policy in result.policies}
        auto = total.sel(policy="Auto").values
        rows[world] = row | {"Auto: largest ÷ median": f"{auto.max() / np.median(auto):.1f}"}
    return pd.DataFrame(rows).T


def change_table(result: Result, fresh: Result) -> pd.DataFrame:
    """Return the regret after the change, of policies that learnt before it and of an Auto that starts there."""
    rows = {}
    for world in result.worlds:
        after = result.regret.sel(world=world).isel(time=slice(CHANGE, None)).sum("time")
        row = {str(policy): _mean(after.sel(policy=policy).values) for policy in result.policies}
        start = fresh.regret.sel(world=world, policy="Auto").sum("time").values
        ratio = float(after.sel(policy="Auto").mean()) / start.mean()
        rows[world] = row | {FRESH: _mean(start), "Auto ÷ fresh": f"{ratio:.2f}"}
    return pd.DataFrame(rows).T


def constant_table(results: Mapping[str, Result]) -> pd.DataFrame:
    """Return the regret with constant means, and the share of trials that end with another arm than the best."""
    rows = {}
    for result in results.values():
        world = str(result.worlds[0])
        total, last = result.total("k").sel(world=world), result.arm.sel(world=world).isel(time=-1)
        row = {str(policy): _mean(total.sel(policy=policy).values) for policy in result.policies}
        best = int(world.split(" ")[0]) - 1
        better = min(float(total.sel(policy=each).mean()) for each in (UCB_2, "Thompson"))
        row["Auto ÷ better of UCB, Thompson"] = f"{float(total.sel(policy='Auto').mean()) / better:.2f}"
        row["wrong at the end"] = f"{100.0 * float((last.sel(policy='Auto') != best).mean()):.0f}%"
        row["wrong, UCB"] = f"{100.0 * float((last.sel(policy=UCB_2) != best).mean()):.0f}%"
        rows[world] = row
    return pd.DataFrame(rows).T


def write_section(results: Mapping[str, Result], markdown: Callable[[pd.DataFrame, str], str]) -> str:
    """Return the section of the page; `markdown(frame, first)` writes a table."""
    shares = family_shares(results["families"])
    means = {policy: np.mean([share for share, _ in shares[policy]]) for policy in shares}
    shown = shares.map(lambda pair: f"{pair[0]:.0f} ± {pair[1]:.0f}")
    shown.loc["mean"] = {policy: f"{mean:.0f}" for policy, mean in means.items()}
    constant = {name: result for name, result in results.items() if name.startswith("constant")}
    trials = results["families"].data.sizes["trial"]
    return f"""## Rewards that are not normal

Share, in percent, of the gap in regret from random play to a particle filter with the true parameters (`FilterOracle`),
{trials:,} trials of 200 steps. D-UCB has the best of twelve settings, chosen with hindsight in each world. Auto's
priors for binary rewards were chosen on these worlds, with other seeds.

{markdown(shown, "world")}

## Outliers

Three arms, γ = 0.9, 400 steps. The Kalman filter knows all parameters but expects normal noise.

{markdown(outlier_table(results["outliers"]), "world")}

## Parameters that change

Regret of the {CHANGE} steps after a change of the parameters at step {CHANGE}; "fresh" starts in the new world, without
a past.

{markdown(change_table(results["changes"], results["changes-fresh"]), "change")}

## Constant means, by arms and horizon

Noise with standard deviation 1; the best arm is 0.5 above the others, which are spread over 0.5. "Wrong at the end" is
the share of trials in which the arm of the last step, of Auto or UCB, is not the best.

{markdown(constant_table(constant), "world")}"""
