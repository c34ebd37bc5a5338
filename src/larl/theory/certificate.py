"""A bound on the cost of learning that is computed from the actions and rewards of a run; valid for every policy."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import InvalidValue, integer, number, one_of, optional
from larl.statespace.steady_state import steady_state
from larl.theory._confidence_sets import Ellipsoid, GapBound, confidence_sets, largest_total_gap
from larl.theory._regressions import Assumptions, Regression, Settings, candidates
from larl.theory.decompose import floor_path, played_steps
from larl.theory.reduction import bias_row, noise_scale, require_steady_start, validate_scalar_world
from larl.worlds.latent_ar import LatentAR

if TYPE_CHECKING:
    from larl.simulation.result import Result

Floats = NDArray[np.float64]
MODELS = ("separate", "shared", "known")
MAX_SHARED_ARMS = 8  # "shared" tries 2^(arms − 1) combinations of signs
BIAS_SHARE = 0.1  # of delta; a smaller share costs a fraction of a lag


class Certificate(NamedTuple):
    """A bound on the cost of learning of each trial.

    Parameters
    ----------
    learning : array, (policy, trial)
        Bound on Σ_t gap_t.
    per_step : array, (policy, trial)
        The same with an independent worst case at every step: Σ_t max(0, max_a UCB_a(t) − LCB_{a_t}(t)).
    floor : float
        Σ_t floor_t, the part of the expected regret that no policy avoids.
    s : int
        Number of lags.
    delta : float
        Probability that Σ_t gap_t exceeds `learning` in a trial.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> result = larl.compare({"LARL": larl.LARL(s=1)}, world, horizon=500, trials=2)
    >>> bound = larl.theory.certificate(result, world, model="shared")
    >>> bool((bound.learning <= bound.per_step).all()), bound.s
    (True, 7)
    """

    learning: Floats
    per_step: Floats
    floor: float
    s: int
    delta: float


def certificate(
    result: "Result",
    world: LatentAR,
    *,
    model: str = "separate",
    noise: str = "known",
    s: int | None = None,
    steps: int | None = None,
    delta: float = 0.05,
    ridge: float = 3.0,
    slack: float = 1.0,
) -> Certificate:
    """Bound the cost of learning Σ_t gap_t of each trial by its own actions and rewards.

    The bound holds with probability ≥ 1 − delta for every policy that acts on the past. Regressions of the rewards on
    the last `s` steps give confidence ellipsoids; the bound is the largest Σ_t gap_t of parameters inside. The world
    gives bounds, not parameters: the noise scales R_a; the size of the filter's weights, Σ_j g_j² decay^{−2j}; the size
    of the bias; and |m_a| ≤ max(1, largest |m_a|/R_a) R_a for the long-run mean rewards m_a. The choice of s, ridge and
    decay does not affect validity.

    Parameters
    ----------
    result : Result
        A result of ``compare(..., keep="all")``, which has every action and reward.
    world : LatentAR
        The world of the result, with the start of `steady_start`.
    model : {"separate", "shared", "known"}, default "separate"
        "separate" has one regression for each arm, as LARL. "shared" has one for all arms: each arm's reward depends on
        the same latent state. β is known up to the signs, because R_a is proportional to |β_a|. "known" is "shared"
        with β and the m_a known.
    noise : {"known", "unknown"}, default "known"
        Whether R_a is known. If not, the given R_a are a guess, used as a prior with the weight of one reward; "shared"
        and "known" still need the ratios of the R_a.
    s : int, >= 1, optional
        Number of lags. By default the smallest number for which the bias is negligible: it grows as log T.
    steps : int, >= 1, optional
        Number of first steps to use; all by default.
    delta : float, in (0, 1), default 0.05
        Probability that the bound fails in a trial.
    ridge : float, > 0, default 3.0
        Penalty of the regressions, relative to the assumed sizes; it grows geometrically with the lag.
    slack : float, >= 1, default 1.0
        Factor by which the assumed sizes of weights, bias and levels exceed the world's.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidValue
        If the world has another start, its filter has no steady state, or the result has no single steps.

    Examples
    --------
    >>> import larl
    >>> world = larl.theory.steady_start(larl.worlds.paper(1))
    >>> result = larl.compare({"LARL": larl.LARL(s=1)}, world, horizon=2000, trials=1)
    >>> bound, random = larl.theory.certificate(result, world), 2000 * larl.theory.random_regret(world)
    >>> round((bound.floor + bound.learning.item()) / random, 2)
    0.69
    """
    function = "certificate"
    world = require_steady_start(function, validate_scalar_world(function, world))
    model, noise = one_of(*MODELS)(function, "model", model), one_of("known", "unknown")(function, "noise", noise)
    if model == "shared" and world.arms > MAX_SHARED_ARMS:
        raise InvalidValue(function, "model", model, f"'separate' for more than {MAX_SHARED_ARMS} arms")
    played = played_steps(function, result, world)
    length = played.arm.shape[-1]
    steps = optional(integer(1, length))(function, "steps", steps) or length
    delta, ridge = number(above=0.0, below=1.0)(function, "delta", delta), number(above=0.0)(function, "ridge", ridge)
    slack, s = number(1.0)(function, "slack", slack), optional(integer(1))(function, "s", s)
    settings, known = assumptions(world, steps, s=s, ridge=ridge, delta=BIAS_SHARE * delta, slack=slack)
    learning, per_step = np.empty(played.arm.shape[:2]), np.empty(played.arm.shape[:2])
    for index in np.ndindex(played.arm.shape[:2]):
        models = candidates(model, played.arm[index][:steps], played.reward[index][:steps], known, settings)
        sets = confidence_sets(models, (1.0 - BIAS_SHARE) * delta, known.bias, is_noise_known=noise == "known")
        learning[index], per_step[index] = _largest(models, sets, known, steps)
    return Certificate(
        learning=learning, per_step=per_step, floor=float(floor_path(world, steps).sum()), s=settings.s, delta=delta
    )


def _largest(
    models: list[Regression], sets: list[list[Ellipsoid] | None], known: Assumptions, steps: int
) -> tuple[float, float]:
    """Return the largest bounds of all models that the data do not refute, including the bias of each step."""
    bounds = [
        largest_total_gap(each, ellipsoids)
        for each, ellipsoids in zip(models, sets, strict=True)
        if ellipsoids is not None
    ] or [GapBound(0.0, 0.0)]
    two_largest = float(np.sort(known.noise)[-2:].sum())
    bias = two_largest * math.sqrt(steps) * known.bias  # Σ_t |b_t(a) − b_t(a_t)| ≤ (R_a + R_{a_t}) Σ_t |b_t|/R
    return max(each.joint for each in bounds) + bias, max(each.per_step for each in bounds) + bias


def assumptions(
    world: LatentAR, horizon: int, *, s: int | None, ridge: float, delta: float, slack: float
) -> tuple[Settings, Assumptions]:
    """Return the lags and penalties, and the bounds that a certificate takes from a world.

    The norm of the biases of all steps is at most its bound with probability ≥ 1 − delta.
    """
    decay = max(float(np.abs(np.linalg.eigvals(steady_state(world).closed_loop)).max()), 1e-3) ** 0.75
    if s is None:
        s = 1
        while bias_norm(world, s, horizon, delta) > 0.1 and s < 200:
            s += 1
    noise, beta = noise_scale(world), np.array(world.beta)
    if noise.min() == 0.0:
        raise InvalidValue("certificate", "world", world, "sigma_z or sigma_r above 0: else there is nothing to learn")
    centre = np.array(world.mu) + beta * world.stationary_mean
    weights = filter_weights(world, s)
    known = Assumptions(
        noise=noise,
        weight=slack**2 * max(float(np.sum(np.square(weights * decay ** -np.arange(float(s))))), 1e-6),
        level=slack * max(1.0, float((np.abs(centre) / noise).max())),
        bias=slack * bias_norm(world, s, horizon, delta),
        beta=beta,
        centre=centre,
    )
    return Settings(s=s, ridge=ridge, decay=decay), known


def filter_weights(world: LatentAR, s: int) -> Floats:
    """Return g_0 … g_{s−1}, the weights of the last measurements in the filter's prediction of z_t."""
    steady = steady_state(world)
    return np.array([float(bias_row(world, j) @ steady.predictor_gain) for j in range(s)])


def bias_norm(world: LatentAR, s: int, horizon: int, delta: float) -> float:
    """Return a bound on √Σ_t (b_t/R)² over all steps, which fails with probability ≤ delta.

    b_t/R is a stationary Gaussian sequence: a moving average of independent innovations with weights h. Its norm has a
    mean of at most √(T Σh²), and is a Lipschitz function of the innovations with constant Σ|h|. (From a steady start
    innovations before the first step are 0, which reduces both.)
    """
    steady, row, response = steady_state(world), bias_row(world, s), []
    negligible = 1e-12 * float(np.abs(row).max())
    while np.abs(row).max() > negligible:
        response.append(abs(float(row @ steady.predictor_gain)))  # innovations of y have sd R_a/|β_a|
        row = row @ world.system.gamma
    weights = np.array(response)
    return math.sqrt(horizon * float(weights @ weights)) + float(weights.sum()) * math.sqrt(2.0 * math.log(1.0 / delta))
