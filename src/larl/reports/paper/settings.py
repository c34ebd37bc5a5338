"""Settings of the baselines: those of the paper's authors, those of each baseline's own theory, and tuned ones.

The paper prints only the ridge λ = 1. The authors' code has α = 1 for Stationary and AR UCB. The settings of SW UCB and
Rexp3 are unknown, so these two have no "authors" setting.
"""

import math

import numpy as np

from larl.policies import ARUCB, LARL, LARLBIC, UCB, DiscountedUCB, Policy, Rexp3, SlidingWindowUCB
from larl.reports.grids import Axis, Grid
from larl.worlds.latent_ar import LatentAR

HORIZON = 200
BASELINES = ("Stationary", "AR UCB", "SW UCB", "Rexp3")  # the paper's
ALL_BASELINES = (*BASELINES, "D-UCB")  # the paper cites D-UCB but does not run it
AUTHORS, THEORY, TUNED = "authors", "theory", "tuned"
LARL_BIC, LARL_TUNED = "LARL (BIC)", "LARL (BIC, tuned)"
GLOSSARY = (
    "Regret is counted from t = k, after the steps whose state is drawn from the start distribution: "
    '`result.total("k")` in Python.',
    "Each baseline has up to three settings, named in brackets after the policy. “authors”: α = 1 and λ = 1; the "
    "authors' settings of SW UCB and Rexp3 are not published, so these two have no such row. “theory”: the setting "
    "from the baseline's own analysis, computed with the true parameters of the world: Stationary has α = sd·√(2 log "
    "T), where sd is that of the reward; AR UCB has the radius of its paper; SW UCB has window 2B√log T and scale B, "
    "D-UCB has discount 1 − 1/(4B) and scale B, with B = 6 sd (Garivier and Moulines, for a change at every step); "
    "Rexp3 has the batch size for the true variation (Besbes et al.). “tuned”: the setting with the smallest mean "
    "regret on other seeds, over α, or over scale and window, discount or batch size; each grid covers the full "
    "range of its settings.",
    "LARL has α = 1 unless it is tuned. LARL (BIC) chooses s by BIC after ⌊T/5⌋ random steps, as the paper describes. "
    "The paper gives no formula for the BIC; the formula and α = 1 are those of the authors' code.",
)


def label(baseline: str, source: str) -> str:
    """Return the name of a baseline with the source of its setting: authors, theory or tuned."""
    return f"{baseline} ({source})"


def reward_sd(world: LatentAR) -> float:
    """Return the stationary standard deviation of the reward of the arm where it is largest."""
    return float(np.sqrt(np.square(world.beta) * world.stationary_var + world.sd**2).max())


def reward_range(world: LatentAR) -> tuple[float, float]:
    """Return the interval that holds the stationary mean ± three standard deviations of every arm's reward."""
    centre = np.array(world.mu) + np.array(world.beta) * world.stationary_mean
    spread = 3.0 * np.sqrt(np.square(world.beta) * world.stationary_var + world.sd**2)
    return float((centre - spread).min()), float((centre + spread).max())


def variation(world: LatentAR, horizon: int) -> float:
    """Return E Σ_t max_a |mean_t(a) − mean_{t−1}(a)| over a horizon, in units of the width of `reward_range`."""
    lag_one = float(np.array(world.gammas) @ world.stationary_cov[0])
    step = math.sqrt(2.0 * max(world.stationary_var - lag_one, 0.0)) * math.sqrt(2.0 / math.pi)
    low, high = reward_range(world)
    return horizon * step * float(np.abs(world.beta).max()) / (high - low)


def variation_for_batch(batch: int, arms: int, horizon: int) -> float:
    """Return the variation for which Rexp3 restarts every `batch` steps."""
    return float(horizon * math.sqrt(arms * math.log(arms)) / (batch - 0.5) ** 1.5)


def authors_settings(world: LatentAR) -> dict[str, Policy]:
    """Return the baselines whose published setting is known: α = 1 and λ = 1."""
    return {"Stationary": UCB(alpha=1.0, ridge=1.0), "AR UCB": ARUCB(world.k, alpha=1.0, ridge=1.0)}


def theory_settings(world: LatentAR) -> dict[str, Policy]:
    """Return the baselines with the settings of their own analyses, computed with the true parameters of the world.

    Stationary: α = sd·√(2 log T), sd of the reward. AR UCB: its paper's radius, with that sd and with the largest
    intercept. SW UCB and D-UCB (Garivier & Moulines 2011) for rewards of width B and Υ changes: window
    2B√(T log T/Υ), discount 1 − √(Υ/T)/(4B), scale B. The means change at every step, so Υ = T. Rexp3 (Besbes et al.
    2014): the batch size for the expected total variation.
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


ALPHA = Axis(
    "α", (0, 0.1, 0.3, 1, 2, 3, 5, 8, 13, 20, 30, 50, 80, 130, 300, 10_000), "no bonus", "only the bonus decides"
)
LARL_ALPHA = Axis("α", (0, 0.1, 0.3, 1, 3, 10, 10_000), "no bonus", "only the bonus decides")
EXPLORE = Axis("exploration", (17, 25, 40, 70, 200), "the minimum for s = 15", "always explores")
WINDOW = Axis("window", (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200), "alternates the arms", "never forgets")
DISCOUNT = Axis(
    "discount",
    (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1),
    "uses only the last reward of each arm",
    "never forgets",
)
SCALE = Axis("scale", (0.001, 0.3, 1, 1.5, 2, 3, 5, 8, 13, 20, 10_000), "no bonus", "only the bonus decides")
# With discounting, the bonus of an arm that is not played grows exponentially, so very small scales matter.
DISCOUNTED_SCALE = Axis("scale", (1e-300, 1e-12, 1e-6, 0.001, 0.03, *SCALE.values[1:]), SCALE.low, SCALE.high)
BATCH = Axis("batch", (1, 2, 5, 10, 20, 50, 100, 200), "restarts at every step", "never restarts")
REWARD_RANGE = Axis(
    "range", (0.001, 0.1, 0.3, 1, 3, 10_000), "uses only the sign of a reward", "cannot distinguish rewards"
)


def grids(world: LatentAR) -> dict[str, Grid]:
    """Return the tuning grid of each policy. Beyond an axis there is no valid value, or the regret does not change."""
    low, high = reward_range(world)
    return {
        "Stationary": Grid((ALPHA,), lambda alpha: UCB(alpha)),
        "AR UCB": Grid((ALPHA,), lambda alpha: ARUCB(world.k, alpha)),
        "SW UCB": Grid((WINDOW, SCALE), lambda window, scale: SlidingWindowUCB(int(window), scale)),
        "Rexp3": Grid(
            (BATCH, REWARD_RANGE),
            lambda batch, factor: Rexp3(variation_for_batch(int(batch), 2, HORIZON), (factor * low, factor * high)),
        ),
        "D-UCB": Grid((DISCOUNT, DISCOUNTED_SCALE), lambda discount, scale: DiscountedUCB(discount, scale)),
        LARL_BIC: Grid((EXPLORE, LARL_ALPHA), lambda explore, alpha: LARLBIC(int(explore), alpha=alpha)),
    }


def describe_settings(policy: Policy) -> str:
    """Return the settings of a policy of the reproduction as text."""
    match policy:
        case UCB():
            return f"α = {policy.alpha:.3g}"
        case ARUCB(radius="theory"):
            return f"order {policy.order}, radius of its paper, σ = {policy.sigma:.3g}"
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
            exploration = "random" if policy.explore_with == "random" else "alternating"
            return f"α = {policy.alpha:.3g}, {policy.explore} {exploration} steps"
        case LARL():
            return f"α = {policy.alpha:.3g}"
    return ""
