"""The policies of the comparison: those without settings, and the grids over which the others are tuned.

Policies for binary rewards (Beta Thompson sampling, KL-UCB) are left out: the rewards of these worlds are not bounded.
"""

from larl.policies import (
    AR2,
    ARUCB,
    CUSUMUCB,
    LARL,
    LARLBIC,
    MUCB,
    UCB,
    AdaptiveLARL,
    Auto,
    BeliefLinUCB,
    ChangePointThompson,
    DiscountedLinUCB,
    DiscountedThompson,
    DiscountedUCB,
    Exp3,
    GLRklUCB,
    KalmanOracle,
    KalmanUCB,
    LatentThompson,
    MarkovOracle,
    ParticleLatentThompson,
    Policy,
    PredictiveSampling,
    Random,
    ResetThompson,
    Rexp3,
    SharedLARL,
    SlidingWindowLinUCB,
    SlidingWindowThompson,
    SlidingWindowUCB,
    ThompsonSampling,
)
from larl.reports.grids import Axis, Grid
from larl.reports.paper.settings import variation_for_batch
from larl.worlds import HeavyTails, LatentAR, LatentMarkov, LatentVAR, World

RANDOM = "random"
MANY_ARMS = 5  # with more arms, long contexts are left out: a regression has 2s|A| + 1 coefficients
MEAN_SD = 3.0  # prior standard deviation of the means for Thompson sampling; that of the noise is tuned

ALPHA = Axis("α", (0, 0.1, 0.3, 1, 3, 10, 30), "no bonus", "nearly only the bonus decides")
SHORT_ALPHA = Axis("α", (0.1, 0.3, 1, 3, 10), "hardly a bonus", "mostly the bonus decides")
LAGS = Axis("s", (1, 2, 3, 5, 10), "s = 0 is UCB", "the longest")
SHORT_LAGS = Axis("s", (1, 2, 5), "s = 0 is UCB", "the longest")
EXPLORE = Axis("exploration", (0.1, 0.2, 0.35), "the least", "the most")
ORDER = Axis("order", (1, 2, 5), "the least", "the largest")
WINDOW = Axis("window", (2, 5, 10, 20, 50, 100, 400), "alternates the arms", "the longest")
LONG_WINDOW = Axis("window", (25, 50, 100, 400), "the shortest", "the longest")
DISCOUNT = Axis("discount", (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1), "forgets nearly all", "never forgets")
LONG_DISCOUNT = Axis("discount", (0.9, 0.95, 0.98, 0.99, 1), "the shortest memory", "never forgets")
SCALE = Axis("scale", (1e-6, 0.01, 0.1, 0.3, 1, 3, 10), "the smallest", "the largest")
SIGMA = Axis("σ", (0.03, 0.1, 0.3, 1, 3, 10), "follows each reward", "mostly random")
HAZARD = Axis("hazard", (0.005, 0.02, 0.05, 0.1, 0.2, 0.5), "few changes", "forgets nearly all")
BATCH = Axis("batch", (2, 5, 10, 20, 50, 200), "restarts after two steps", "the longest")
BOUND = Axis("range ±", (0.3, 1, 3, 10, 30), "the narrowest", "hardly distinguishes rewards")
GAMMA = Axis("γ", (0.05, 0.1, 0.2, 0.4, 0.8), "the least", "mostly random")
REFERENCE = Axis("reference", (5, 20), "the shorter", "the longer")
THRESHOLD = Axis("threshold", (2, 8, 32), "restarts often", "hardly restarts")
FORCED = Axis("forced", (0.02, 0.1), "the less", "the more")
SPLIT_WINDOW = Axis("window", (10, 30), "the shorter", "the longer")
SPLIT_THRESHOLD = Axis("threshold", (1.5, 3, 6), "restarts often", "hardly restarts")
ERROR = Axis("δ", (0.001, 0.05, 0.5), "the fewest restarts", "the most restarts")
STATES = Axis("states", (2, 3, 5), "the least", "the most")


def oracles(world: World) -> dict[str, Policy]:
    """Return the policies without tuning that know the parameters of the world."""
    if isinstance(world, LatentMarkov):
        return {"MarkovOracle": MarkovOracle(), "LatentThompson": LatentThompson()}
    if isinstance(world, LatentAR | LatentVAR | HeavyTails):
        sampling = {} if isinstance(world, LatentVAR) else {"PredictiveSampling": PredictiveSampling()}
        return {"KalmanOracle": KalmanOracle(), **sampling}
    return {}


def oracle_grids(world: World) -> dict[str, Grid]:
    """Return the tuning grids of policies that know the parameters of the world."""
    if isinstance(world, LatentMarkov):
        return {
            "BeliefLinUCB (true model)": Grid((SHORT_ALPHA,), lambda alpha: BeliefLinUCB(alpha=alpha, model="given"))
        }
    if isinstance(world, LatentAR | LatentVAR | HeavyTails):
        return {"KalmanUCB": Grid((ALPHA,), lambda alpha: KalmanUCB(alpha=alpha))}
    return {}


def untuned() -> dict[str, Policy]:
    """Return the policies that need no settings."""
    return {
        "Auto": Auto(),
        "SharedLARL": SharedLARL(),
        "AdaptiveLARL": AdaptiveLARL(),
        RANDOM: Random(),
    }


def grids(arms: int, horizon: int) -> dict[str, Grid]:
    """Return the tuning grid of each policy that knows nothing of the world."""
    lags, short_lags = (LAGS, SHORT_LAGS) if arms <= MANY_ARMS else (_first(LAGS, 3), _first(SHORT_LAGS, 2))
    return {
        "LARL": Grid((lags, ALPHA), lambda s, alpha: LARL(int(s), alpha=alpha)),
        "LARLBIC": Grid(
            (EXPLORE, SHORT_ALPHA),
            lambda share, alpha: LARLBIC(int(share * horizon), s_max=int(lags.values[-1]), alpha=alpha),
        ),
        "SlidingWindowLinUCB": Grid(
            (short_lags, LONG_WINDOW, SHORT_ALPHA),
            lambda s, window, alpha: SlidingWindowLinUCB(int(s), int(window), alpha=alpha),
        ),
        "DiscountedLinUCB": Grid(
            (short_lags, LONG_DISCOUNT, SHORT_ALPHA),
            lambda s, discount, alpha: DiscountedLinUCB(int(s), discount, alpha=alpha),
        ),
        "ARUCB": Grid((ORDER, ALPHA), lambda order, alpha: ARUCB(int(order), alpha)),
        "AR2": Grid(
            (Axis("AR coefficient", (0.3, 0.6, 0.8, 0.9, 0.97), "hardly predicts", "the most persistent"), SIGMA),
            lambda alpha, sigma: AR2(alpha, sigma, epoch=horizon),
        ),
        "BeliefLinUCB": Grid(
            (STATES, SHORT_ALPHA), lambda states, alpha: BeliefLinUCB(states=int(states), alpha=alpha)
        ),
        "ParticleLatentThompson": Grid((STATES,), lambda states: ParticleLatentThompson(int(states))),
        "UCB": Grid((ALPHA,), UCB),
        "SlidingWindowUCB": Grid((WINDOW, SCALE), lambda window, scale: SlidingWindowUCB(int(window), scale)),
        "DiscountedUCB": Grid((DISCOUNT, SCALE), DiscountedUCB),
        "CUSUMUCB": Grid(
            (REFERENCE, THRESHOLD, FORCED, SCALE),
            lambda reference, threshold, forced, scale: CUSUMUCB(
                int(reference), threshold=threshold, alpha=forced, scale=scale
            ),
        ),
        "MUCB": Grid(
            (SPLIT_WINDOW, SPLIT_THRESHOLD, FORCED, SCALE),
            lambda window, threshold, forced, scale: MUCB(int(window), threshold, forced, scale),
        ),
        "GLRklUCB": Grid(
            (ERROR, FORCED, SIGMA),
            lambda delta, forced, sigma: GLRklUCB(delta, forced, sigma=sigma),
        ),
        "ThompsonSampling": Grid((SIGMA,), lambda sigma: ThompsonSampling(sigma, MEAN_SD)),
        "DiscountedThompson": Grid(
            (DISCOUNT, SIGMA), lambda discount, sigma: DiscountedThompson(discount, sigma, MEAN_SD)
        ),
        "SlidingWindowThompson": Grid(
            (WINDOW, SIGMA), lambda window, sigma: SlidingWindowThompson(int(window), sigma, MEAN_SD)
        ),
        "ChangePointThompson": Grid((HAZARD, SIGMA), lambda hazard, sigma: ChangePointThompson(hazard, sigma, MEAN_SD)),
        "ResetThompson": Grid((HAZARD, SIGMA), lambda hazard, sigma: ResetThompson(hazard, sigma, MEAN_SD)),
        "Exp3": Grid((GAMMA, BOUND), lambda gamma, bound: Exp3(gamma, (-bound, bound))),
        "Rexp3": Grid(
            (BATCH, BOUND),
            lambda batch, bound: Rexp3(variation_for_batch(int(batch), arms, horizon), (-bound, bound)),
        ),
    }


def _first(axis: Axis, count: int) -> Axis:
    """Return an axis with its first values only."""
    return axis._replace(values=axis.values[:count])
