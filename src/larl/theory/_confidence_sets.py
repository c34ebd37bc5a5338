"""Confidence sets of the regressions of a certificate, and the largest total gap within them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl.theory._regressions import Arms, Regression

Floats = NDArray[np.float64]


class Fit(NamedTuple):
    """A ridge regression: V = Λ + XᵀX, its estimate, log det V − log det Λ, penalised loss and number of rows."""

    gram: Floats  # V
    estimate: Floats  # θ̂
    log_det: float
    loss: float  # min over θ of ‖y − Xθ‖² + ‖θ‖²_Λ
    rows: int


class Ellipsoid(NamedTuple):
    """All θ with ‖θ − centre‖_V ≤ radius."""

    gram: Floats
    centre: Floats
    radius: float


def fit(model: Regression) -> list[Fit]:
    """Return the fit of each regression to all steps."""
    d, fits = model.penalty.size, []
    for regression in sorted(set(model.owner)):
        gram, moment, square, rows = np.diag(model.penalty), np.zeros(d), 0.0, 0
        for steps in model.chunks():
            x, y = model.rows(regression, steps, model.features(steps))
            gram, moment, square, rows = gram + x.T @ x, moment + x.T @ y, square + float(y @ y), rows + y.size
        estimate = np.asarray(np.linalg.solve(gram, moment), np.float64)
        log_det = float(np.linalg.slogdet(gram)[1]) - float(np.log(model.penalty).sum())
        fits.append(Fit(gram, estimate, log_det, max(square - float(moment @ estimate), 0.0), rows))
    return fits


def largest_loss(loss: float, log_det: float, rows: int, log_level: float, is_noise_known: bool) -> float:
    """Return a bound on the true parameters' loss, ‖y − Xθ − b‖², given the fit of a mixture of forecasters.

    The mixture's density over the true one exceeds e^{log_level} at some step with probability ≤ e^{−log_level}. The
    noise has sd 1, or an unknown one: then the mixture is over σ² too, inverse gamma with one row of variance 1.
    """
    if is_noise_known or rows == 0:
        return loss + log_det + 2.0 * log_level
    mixture = (
        0.5 * log_det
        + 0.5 * (1.0 + rows) * math.log(0.5 * (1.0 + loss))
        - 0.5 * math.log(0.5)
        + math.lgamma(0.5)
        - math.lgamma(0.5 * (1.0 + rows))
    )
    return rows * math.exp(2.0 / rows * (mixture + log_level) - 1.0)


def radius(
    own: Fit, squared_size: float, log_level: float, bias: float, *, is_noise_known: bool, others: Sequence[Fit] = ()
) -> float | None:
    """Return the radius of a regression's ellipsoid around θ̂, in the norm of V; None if other models refute it.

    ‖θ − θ̂_b‖²_V = ‖y − Xθ − b‖² + ‖θ‖²_Λ − loss(y − b), where θ̂_b is the estimate without bias. The fit to y bounds the
    first term; its own loss is unknown by the bias, up to (√loss ± ‖b‖)². ‖θ̂ − θ̂_b‖_V is at most ‖b‖.
    """
    root = math.sqrt(own.loss)
    low, high = max(root - bias, 0.0) ** 2, (root + bias) ** 2
    excess = max(largest_loss(loss, own.log_det, own.rows, log_level, is_noise_known) - loss for loss in (low, high))
    for other in others:
        bound = largest_loss(other.loss, other.log_det, other.rows, log_level, is_noise_known)
        excess = min(excess, bound - low)
    squared = excess + squared_size
    return math.sqrt(squared) + bias if squared >= 0.0 else None


def confidence_sets(
    models: Sequence[Regression], delta: float, bias: float, *, is_noise_known: bool
) -> list[list[Ellipsoid] | None]:
    """Return the ellipsoids of each model; None if the data refute it.

    With probability ≥ 1 − delta, the true model's ellipsoids contain its true parameters at all steps, if the norm of
    all biases is at most `bias`.
    """
    fits = [fit(model) for model in models]
    sets: list[list[Ellipsoid] | None] = []
    for index, (model, own) in enumerate(zip(models, fits, strict=True)):
        others = [fits[i][0] for i in range(len(fits)) if i != index]
        log_level = math.log(len(own) * len(models) / delta)
        ellipsoids = []
        for each in own:
            size = radius(each, model.squared_size, log_level, bias, is_noise_known=is_noise_known, others=others)
            if size is not None:
                ellipsoids.append(Ellipsoid(each.gram, each.estimate, size))
        sets.append(ellipsoids if len(ellipsoids) == len(own) else None)
    return sets


class GapBound(NamedTuple):
    """Bounds on Σ_t gap_t over all parameters in the ellipsoids."""

    joint: float  # one parameter for all steps
    per_step: float  # Σ_t max(0, max_a UCB_a − LCB_{a_t})


def largest_total_gap(model: Regression, sets: Sequence[Ellipsoid]) -> GapBound:
    """Return bounds on Σ_t gap_t over all parameters in the ellipsoids, without biases.

    For any c_t ≥ 0, Σ_t (D_t + x_tᵀe)₊ ≤ Σ_t max_u{(D_t + u)₊ − c_t u²} + radius² λ_max(V^{−½} Σ c_t x_t x_tᵀ V^{−½})
    if ‖e‖_V ≤ radius, with |u| ≤ radius·‖x_t‖_{V⁻¹}. Here c_t is ν/(x_tᵀ K x_t) for steps whose gap can be positive.
    """
    from scipy.optimize import minimize_scalar

    roots = [np.linalg.inv(np.linalg.cholesky(each.gram)).T for each in sets]
    size, count = model.arms.size, model.count
    differences, widths = np.empty((size, count)), np.empty((size, count))
    for steps in model.chunks():
        features, played, values = model.features(steps), model.arms[steps], np.empty((steps.stop - steps.start, count))
        for arm in range(count):
            gradient, each = model.gradient(arm, steps, features), sets[model.owner[arm]]
            values[:, arm] = gradient @ each.centre
            widths[steps, arm] = np.sqrt(np.square(gradient @ roots[model.owner[arm]]).sum(axis=1)) * each.radius
        differences[steps] = values - values[np.arange(played.size), played][:, None] + model.constant(steps)
        differences[np.arange(steps.start, steps.stop), played] = -np.inf
    highest = differences + widths + _of_played(widths, model.arms)
    per_step = np.maximum(highest.max(axis=1), 0.0)
    is_open = per_step > 0.0
    total = float(per_step.sum())
    if not is_open.any():
        return GapBound(total, total)
    curvature, energy = _curvature(model, roots, is_open)
    curvature = curvature[is_open] / (energy * np.square([each.radius for each in sets]))[model.owner]
    differences, widths, played = differences[is_open], widths[is_open], model.arms[is_open]

    def bound(log_nu: float) -> float:
        scaled = math.exp(log_nu) * curvature
        with np.errstate(divide="ignore"):
            u = np.minimum(widths, 0.5 / scaled)
        gain = u - scaled * np.square(u)
        gaps = (differences + gain + _of_played(gain, played)).max(axis=1)
        return len(sets) * math.exp(log_nu) + float(np.maximum(gaps, 0.0).sum())

    best = minimize_scalar(bound, bounds=(-5.0, math.log(1.0 + total)), method="bounded", options={"maxiter": 30})
    return GapBound(min(float(best.fun), total), total)


def _of_played(values: Floats, arms: Arms) -> Floats:
    """Return the column of the arm played, (steps, 1)."""
    return values[np.arange(arms.size), arms][:, None]


def _curvature(model: Regression, roots: Sequence[Floats], is_open: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return c_t of every step and arm for ν = 1, and λ_max(V^{−½} Σ c_t x_t x_tᵀ V^{−½}) of every regression.

    The first pass has c_t = 1/‖x_t‖²_{V⁻¹}; the second replaces V⁻¹ by the matrix that the first one finds, so that
    steps along the dominating directions count less.
    """
    d = model.penalty.size
    shapes, curvature, sums = [np.eye(d)] * len(roots), np.zeros((model.arms.size, model.count)), [np.eye(d)]
    for _ in range(2):
        sums = [np.zeros((d, d)) for _ in roots]
        for steps in model.chunks():
            chosen, features = is_open[steps], model.features(steps)
            for arm in range(model.count):
                owner = model.owner[arm]
                z = model.gradient(arm, steps, features)[chosen] @ roots[owner]
                size = np.einsum("ti,ti->t", z @ shapes[owner], z)
                weight = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
                sums[owner] += (z * weight[:, None]).T @ z
                curvature[steps, arm][chosen] = weight
        shapes = [d / float(np.trace(each)) * each for each in sums]
    return curvature, np.array([float(np.linalg.eigvalsh(each)[-1]) for each in sums])
