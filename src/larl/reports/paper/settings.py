"""Settings of the policies that LARL is compared with: the authors' where known, their own theory's, and tuned ones.

The paper prints one setting of its baselines, the ridge λ = 1. Its authors' code has α = 1 for Stationary and AR UCB;
what SW UCB and Rexp3 ran with is not known, so these two have no "authors" setting here.
"""

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

import numpy as np

from larl.policies import ARUCB, LARL, LARLBIC, UCB, DiscountedUCB, Policy, Rexp3, SlidingWindowUCB
from larl.worlds.latent_ar import LatentAR

HORIZON = 200
BASELINES = ("Stationary", "AR UCB", "SW UCB", "Rexp3")  # the paper's
ALL = (*BASELINES, "D-UCB")  # and one that it cites and does not run
AUTHORS, THEORY, TUNED = "authors", "theory", "tuned"
LARL_BIC, LARL_TUNED = "LARL (BIC)", "LARL (BIC, tuned)"
GLOSSARY = (
    "Baselines are compared in up to three settings, which the name of a policy gives in brackets. authors: α = 1 and "
    "λ = 1; for SW UCB and Rexp3 the authors' settings are not published, so there is no such row. theory: what the "
    "baseline's own analysis asks for, with the true quantities of the world: Stationary α = sd·√(2 log T), sd of the "
    "reward; AR UCB its paper's radius; SW UCB window 2B√log T and scale B, D-UCB discount 1 − 1/(4B) and scale B, "
    "B = 6 sd (Garivier and Moulines, for a change at every step); Rexp3 the batch for the true variation (Besbes et "
    "al.). tuned: the least mean regret on other seeds, over α, or over scale and window, discount or batch; every "
    "grid runs from one limit of the policy to the other.",
    "LARL has α = 1 unless it says tuned. LARL (BIC) chooses s by BIC after ⌊T/5⌋ random steps, as the paper's text "
    "says; the paper gives no formula of the BIC, the one here is that of the authors' code, as is α = 1.",
)


def label(kind: str, way: str) -> str:
    """The name of a baseline with one of its settings."""
    return f"{kind} ({way})"


def reward_sd(world: LatentAR) -> float:
    """The long-run standard deviation of a reward, of the arm where it is largest."""
    return float(np.sqrt(np.square(world.beta) * world.stationary_var + world.sd**2).max())


def reward_range(world: LatentAR) -> tuple[float, float]:
    """An interval for the long-run rewards: within three standard deviations of every arm's mean."""
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


def authors_settings(world: LatentAR) -> dict[str, Policy]:
    """α = 1 and λ = 1, for the baselines whose published setting is known."""
    return {"Stationary": UCB(alpha=1.0, ridge=1.0), "AR UCB": ARUCB(world.k, alpha=1.0, ridge=1.0)}


def theory_settings(world: LatentAR) -> dict[str, Policy]:
    """What each baseline's own analysis asks for, with the true quantities of the world put in.

    Stationary: α = sd·√(2 log T), sd of the reward. AR UCB: its paper's radius, with that sd and with the largest
    intercept. SW UCB and D-UCB (Garivier & Moulines 2011) for rewards of width B and Υ changes: window
    2B√(T log T/Υ), discount 1 − √(Υ/T)/(4B), scale B. The means change at every step here, so Υ = T. Rexp3 (Besbes et
    al. 2014): the batch for the expected total variation.
    """
    sd, (low, high) = reward_sd(world), reward_range(world)
    width = high - low
    window = min(round(2.0 * width * math.sqrt(math.log(HORIZON))), HORIZON)
    return {
        "Stationary": UCB(alpha=sd * math.sqrt(2.0 * math.log(HORIZON))),
        "AR UCB": ARUCB(world.k, radius="theory", bound=float(np.abs(world.mu).max()), sigma=sd),
        "SW UCB": SlidingWindowUCB(window, scale=width),
        "Rexp3": Rexp3(variation(world, HORIZON), (low, high)),
        "D-UCB": DiscountedUCB(1.0 - 1.0 / (4.0 * width), scale=width),
    }


class Axis(NamedTuple):
    """One setting of a grid. Both ends are limits: beyond them there is nothing, or the regret stays the same."""

    name: str
    values: tuple[float, ...]
    low: str  # what the policy is at the lower end
    high: str


ALPHA = Axis(
    "α", (0, 0.1, 0.3, 1, 2, 3, 5, 8, 13, 20, 30, 50, 80, 130, 300, 10_000), "no bonus", "chooses by the bonus alone"
)
LARL_ALPHA = Axis("α", (0, 0.1, 0.3, 1, 3, 10, 10_000), "no bonus", "chooses by the bonus alone")
EXPLORE = Axis("exploration", (17, 25, 40, 70, 200), "the least that allows s = 15", "explores all the time")
WINDOW = Axis("window", (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200), "alternates", "never forgets")
DISCOUNT = Axis(
    "discount",
    (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1),
    "remembers the last reward of each arm",
    "never forgets",
)
SCALE = Axis("scale", (0.001, 0.3, 1, 1.5, 2, 3, 5, 8, 13, 20, 10_000), "no bonus", "chooses by the bonus alone")
FADING_SCALE = Axis(  # the bonus of an arm grows by a factor a step while it is not played, so small scales differ too
    "scale", (1e-300, 1e-12, 1e-6, 0.001, 0.03, *SCALE.values[1:]), SCALE.low, SCALE.high
)
BATCH = Axis("batch", (1, 2, 5, 10, 20, 50, 100, 200), "restarts at every step", "never restarts")
SHARE = Axis("range", (0.001, 0.1, 0.3, 1, 3, 10_000), "sees signs alone", "sees no difference")


class Grid(NamedTuple):
    """The settings that a policy is tuned over."""

    axes: tuple[Axis, ...]
    build: Callable[..., Policy]

    @property
    def points(self) -> list[tuple[float, ...]]:
        """Every combination of settings."""
        return list(product(*(axis.values for axis in self.axes)))


def grids(world: LatentAR) -> dict[str, Grid]:
    """The grid of each policy that is tuned."""
    low, high = reward_range(world)
    return {
        "Stationary": Grid((ALPHA,), lambda alpha: UCB(alpha)),
        "AR UCB": Grid((ALPHA,), lambda alpha: ARUCB(world.k, alpha)),
        "SW UCB": Grid((WINDOW, SCALE), lambda window, scale: SlidingWindowUCB(int(window), scale)),
        "Rexp3": Grid(
            (BATCH, SHARE),
            lambda batch, share: Rexp3(variation_of_batch(int(batch), 2, HORIZON), (share * low, share * high)),
        ),
        "D-UCB": Grid((DISCOUNT, FADING_SCALE), lambda discount, scale: DiscountedUCB(discount, scale)),
        LARL_BIC: Grid((EXPLORE, LARL_ALPHA), lambda explore, alpha: LARLBIC(int(explore), alpha=alpha)),
    }


def candidate(kind: str, point: Iterable[float]) -> str:
    """The name of a point of a grid."""
    return f"{kind}|" + "|".join(f"{value:g}" for value in point)


class Choice(NamedTuple):
    """The point of a grid with the least mean regret on the tuning seeds."""

    kind: str
    policy: Policy
    point: tuple[float, ...]
    regret: float
    words: str  # the setting in words
    limits: tuple[str, ...]  # for each axis whose end was chosen: which end, and what it means


def choose(kind: str, grid: Grid, regret: Callable[[str], float]) -> Choice:
    """The best point of a grid, and which of its settings lie at an end of their axis.

    Of points with the same regret, one inside the grid is preferred: where a setting makes no difference, its end is
    not what was chosen.
    """

    def ends(point: tuple[float, ...]) -> int:
        return sum(value in (axis.values[0], axis.values[-1]) for axis, value in zip(grid.axes, point, strict=True))

    best = min(grid.points, key=lambda point: (regret(candidate(kind, point)), ends(point)))
    words, limits = [], []
    for axis, value in zip(grid.axes, best, strict=True):
        words.append(f"{axis.name} {value:g}")
        if value in (axis.values[0], axis.values[-1]):
            limits.append(f"{axis.name} {value:g}: {axis.low if value == axis.values[0] else axis.high}")
    return Choice(kind, grid.build(*best), best, regret(candidate(kind, best)), ", ".join(words), tuple(limits))


def setting(policy: Policy) -> str:
    """The settings of a policy of this experiment in words."""
    match policy:
        case UCB():
            return f"α = {policy.alpha:.3g}"
        case ARUCB(radius="theory"):
            return f"order {policy.order}, its paper's radius, σ = {policy.sigma:.3g}"
        case ARUCB():
            return f"order {policy.order}, α = {policy.alpha:.3g}"
        case SlidingWindowUCB():
            return f"window {policy.window}, scale {policy.scale:.3g}"
        case DiscountedUCB():
            return f"discount {policy.discount:.3g}, scale {policy.scale:.3g}"
        case Rexp3():
            low, high = policy.reward_range
            return f"batch {policy.batch(2, HORIZON)}, range {low:.3g} to {high:.3g}"
        case LARLBIC():
            how = "random" if policy.explore_with == "random" else "alternating"
            return f"α = {policy.alpha:.3g}, {policy.explore} {how} steps"
        case LARL():
            return f"α = {policy.alpha:.3g}"
    return ""
