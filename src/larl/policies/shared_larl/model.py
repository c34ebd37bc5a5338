"""Maximum a posteriori fit of one latent AR state for all arms (docs/theory.md, section 10, derives the model).

A reward r of arm a is a reading y = ±(r − m_a)e^{−ℓ_a} of the state. The innovation e_t = y_t − Σ_{j<s} g_j y_{t−1−j}
has variance 1, whichever arms were played. Its negative log density is φ_ν(e_t) + ℓ_a, with the Student-t loss
φ_ν(e) = ½(ν+1) log(1 + e²/ν). The first s steps, which have fewer than s lags, have the sd e^{ζ_t} instead of 1, with
ζ_t = ζ(1 − START_RAMP·t/s).

The parameter vector is g_0 … g_{s−1}, the common offset o, ζ, then m_a, ℓ_a for each arm in the order of first plays;
the position in that order is the arm's slot. A mode is one choice of signs. A mode also has a quadratic approximation
of the loss of all rows that left the window: c + hᵀd + ½dᵀQd in d = parameters − `marginal_centre`. Each row is
linearised at the parameters of the time it left.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper
from larl.policies._student_t import irls_weight, unit_scale_loss

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NU = 30.0  # degrees of freedom of the innovations: nearly normal
START_RAMP = 0.7  # how much ζ_t falls over the first s steps
START_LOG_SD, START_PRECISION = 0.5, 1.0  # ζ ~ N(0.5, 1)
MEAN_SPREAD, MEAN_SPREAD_NU = 0.7, 2.0  # (m_a − o)e^{−mean ℓ}/MEAN_SPREAD ~ t₂: heavy tails allow distant means
SCALE_PRECISION = 4.0  # prior precision of ℓ_a around their mean
ANCHOR_PRECISION = 0.01  # prior precision of that mean around `Prior.log_scale`
SMALL_SCALE_PENALTY = 1e-6  # keeps every e^{ℓ_a} above about 1e-3 e^{log_scale}


class RewardWindow(NamedTuple):
    """The last rewards: the rows of the window, after the s lags of its first row."""

    slot: Ints  # (window + s,) slot of the arm, −1 where the reward is missing
    value: Floats  # (window + s,) (reward − offset)/scale
    y: Floats  # (window + s,) scratch: readings of the state
    row: Floats  # (d,) scratch: gradient of a residual
    size: Ints  # (3,) number of entries; index of the first entry that is a row; number of arms played so far


class Prior(NamedTuple):
    precision: Floats  # (s,) of g
    log_scale: Floats  # (1,) prior mean of the mean of ℓ


class Modes(NamedTuple):
    """The modes: parameters, signs and curvature of each, and its quadratic of the rows that left the window."""

    theta: Floats  # (modes, d) parameters
    sign: Floats  # (modes, arms) ±1, by slot
    factor: Floats  # (modes, d, d) lower Cholesky factor of the curvature
    evidence: Floats  # (modes,) Laplace approximation: −objective − ½ log det curvature
    marginal_centre: Floats  # (modes, d) where the quadratic of the rows that left is expanded
    marginal_gradient: Floats  # (modes, d) h
    marginal_curvature: Floats  # (modes, d, d) Q
    marginal_loss: Floats  # (modes,) c


class Work(NamedTuple):
    gradient: Floats  # (d,)
    step: Floats  # (d,)
    candidate: Floats  # (d,)
    inverse: Floats  # (arms,) ±e^{−ℓ}


@inline
def arm_offset(s: int, slot: int) -> int:
    """Return the index of m_a in the parameters; ℓ_a follows it. arm_offset(s, arms) is the number of parameters."""
    return s + 2 + 2 * slot


@inline
def start_share(i: int, s: int) -> float:
    """Return the factor of ζ in the log sd of entry i."""
    return 1.0 - START_RAMP * i / s if i < s else 0.0


@inline
def write_readings(window: RewardWindow, theta: Floats, sign: Floats, inverse: Floats, s: int) -> None:
    """Write the reading y of every entry."""
    for a in range(window.size[2]):
        inverse[a] = sign[a] * math.exp(-theta[arm_offset(s, a) + 1])
    for i in range(window.size[0]):
        a = window.slot[i]
        window.y[i] = (window.value[i] - theta[arm_offset(s, a)]) * inverse[a] if a >= 0 else 0.0


@inline
def residual(window: RewardWindow, theta: Floats, i: int, s: int) -> float:
    """Return e of entry i, without lags before the first step."""
    e = window.y[i]
    for j in range(min(i, s)):
        e -= theta[j] * window.y[i - 1 - j]
    return e * math.exp(-theta[s + 1] * start_share(i, s)) if i < s else e


@inline
def write_residual_gradient(window: RewardWindow, theta: Floats, inverse: Floats, i: int, s: int, e: float) -> None:
    """Write the gradient of e_i into `window.row`."""
    row, d = window.row, arm_offset(s, window.size[2])
    for p in range(d):
        row[p] = 0.0
    a = arm_offset(s, window.slot[i])
    row[a], row[a + 1] = -inverse[window.slot[i]], -window.y[i]
    for j in range(min(i, s)):
        reading, slot = window.y[i - 1 - j], window.slot[i - 1 - j]
        if slot < 0:
            continue
        b = arm_offset(s, slot)
        row[j] = -reading
        row[b] += theta[j] * inverse[slot]
        row[b + 1] += theta[j] * reading
    if i < s:
        shrink = math.exp(-theta[s + 1] * start_share(i, s))
        for p in range(d):
            row[p] *= shrink
        row[s + 1] = -e * start_share(i, s)


@inline
def add_outer_product(curvature: Floats, gradient: Floats, row: Floats, weight: float, e: float, d: int) -> None:
    """Add weight·row·rowᵀ to `curvature` and weight·e·row to `gradient`."""
    for p in range(d):
        scaled = weight * row[p]
        gradient[p] += e * scaled
        for q in range(d):
            curvature[p, q] += scaled * row[q]


@inline
def add_row(
    window: RewardWindow, theta: Floats, inverse: Floats, curvature: Floats, gradient: Floats, i: int, s: int
) -> float:
    """Add entry i to gradient and curvature; return its loss.

    The log sd v = ℓ_a + ζ_t enters as φ(e) + v. The curvature in v gets E[e ∂²e/∂v²] = 1 in addition to the product of
    gradients, which does not contain it.
    """
    e, a, part = residual(window, theta, i, s), arm_offset(s, window.slot[i]) + 1, start_share(i, s)
    write_residual_gradient(window, theta, inverse, i, s, e)
    add_outer_product(curvature, gradient, window.row, irls_weight(e, NU), e, arm_offset(s, window.size[2]))
    gradient[a] += 1.0
    curvature[a, a] += 1.0
    gradient[s + 1] += part
    curvature[s + 1, s + 1] += part * part
    curvature[s + 1, a] += part
    curvature[a, s + 1] += part
    return unit_scale_loss(e, NU) + theta[a] + part * theta[s + 1]


@inline
def mean_log_scale(theta: Floats, known: int, s: int) -> float:
    """Return the mean of ℓ_a over the arms played so far."""
    total = 0.0
    for a in range(known):
        total += theta[arm_offset(s, a) + 1]
    return total / known


@inline
def prior_loss(prior: Prior, theta: Floats, known: int, s: int) -> float:
    """Return the negative log prior. It contains −mean ℓ, which integrating over the free offset o leaves."""
    mean = mean_log_scale(theta, known, s)
    total = (
        0.5 * ANCHOR_PRECISION * (mean - prior.log_scale[0]) ** 2
        + 0.5 * START_PRECISION * (theta[s + 1] - START_LOG_SD) ** 2
        - mean
    )
    for j in range(s):
        total += 0.5 * prior.precision[j] * theta[j] ** 2
    for a in range(known):
        p = arm_offset(s, a)
        total += unit_scale_loss((theta[p] - theta[s]) * math.exp(-mean) / MEAN_SPREAD, MEAN_SPREAD_NU)
        total += 0.5 * SCALE_PRECISION * (theta[p + 1] - mean) ** 2
        total += 0.5 * SMALL_SCALE_PENALTY * math.exp(2.0 * (prior.log_scale[0] - theta[p + 1]))
    return total


@inline
def add_prior(
    prior: Prior, theta: Floats, row: Floats, curvature: Floats, gradient: Floats, known: int, s: int
) -> None:
    """Add the gradient and curvature of the negative log prior."""
    mean, d = mean_log_scale(theta, known, s), arm_offset(s, known)
    unit = math.exp(-mean) / MEAN_SPREAD
    gradient[s + 1] += START_PRECISION * (theta[s + 1] - START_LOG_SD)
    curvature[s + 1, s + 1] += START_PRECISION
    for j in range(s):
        gradient[j] += prior.precision[j] * theta[j]
        curvature[j, j] += prior.precision[j]
    for a in range(known):
        p = arm_offset(s, a)
        distance = (theta[p] - theta[s]) * unit
        for q in range(d):
            row[q] = 0.0
        for b in range(known):
            row[arm_offset(s, b) + 1] = -distance / known
            curvature[p + 1, arm_offset(s, b) + 1] += (ANCHOR_PRECISION / known - SCALE_PRECISION) / known
        row[s], row[p] = -unit, unit
        add_outer_product(curvature, gradient, row, irls_weight(distance, MEAN_SPREAD_NU), distance, d)
        low = SMALL_SCALE_PENALTY * math.exp(2.0 * (prior.log_scale[0] - theta[p + 1]))
        gradient[p + 1] += (
            SCALE_PRECISION * (theta[p + 1] - mean)
            - low
            + (ANCHOR_PRECISION * (mean - prior.log_scale[0]) - 1.0) / known
        )
        curvature[p + 1, p + 1] += SCALE_PRECISION + 2.0 * low


@inner
def objective(window: RewardWindow, prior: Prior, modes: Modes, k: int, theta: Floats, inverse: Floats) -> float:
    """Return the negative log posterior at `theta` with the signs of mode k, up to a constant."""
    s, d = prior.precision.size, arm_offset(prior.precision.size, window.size[2])
    write_readings(window, theta, modes.sign[k], inverse, s)
    total = prior_loss(prior, theta, window.size[2], s) + modes.marginal_loss[k]
    for i in range(window.size[1], window.size[0]):
        if window.slot[i] >= 0:
            level = theta[arm_offset(s, window.slot[i]) + 1] + start_share(i, s) * theta[s + 1]
            total += unit_scale_loss(residual(window, theta, i, s), NU) + level
    for p in range(d):
        half = modes.marginal_gradient[k, p]
        for q in range(d):
            half += 0.5 * modes.marginal_curvature[k, p, q] * (theta[q] - modes.marginal_centre[k, q])
        total += half * (theta[p] - modes.marginal_centre[k, p])
    return total


@inner
def gradient_and_curvature(window: RewardWindow, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """Write gradient and curvature (into `factor`) at the parameters of mode k; return the objective."""
    s, d = prior.precision.size, arm_offset(prior.precision.size, window.size[2])
    theta, curvature, gradient = modes.theta[k], modes.factor[k], work.gradient
    total = prior_loss(prior, theta, window.size[2], s) + modes.marginal_loss[k]
    for p in range(d):
        shift = 0.0
        for q in range(d):
            curvature[p, q] = modes.marginal_curvature[k, p, q]
            shift += modes.marginal_curvature[k, p, q] * (theta[q] - modes.marginal_centre[k, q])
        total += (modes.marginal_gradient[k, p] + 0.5 * shift) * (theta[p] - modes.marginal_centre[k, p])
        gradient[p] = modes.marginal_gradient[k, p] + shift
    write_readings(window, theta, modes.sign[k], work.inverse, s)
    for i in range(window.size[1], window.size[0]):
        if window.slot[i] >= 0:
            total += add_row(window, theta, work.inverse, curvature, gradient, i, s)
    add_prior(prior, theta, window.row, curvature, gradient, window.size[2], s)
    return total


@inner
def marginalise_row(window: RewardWindow, prior: Prior, modes: Modes, k: int, i: int, work: Work) -> None:
    """Add entry i to the quadratic of mode k, expanded at its current parameters, for which `y` must be current."""
    s, d = prior.precision.size, arm_offset(prior.precision.size, window.size[2])
    theta, at, gradient, curvature = (
        modes.theta[k],
        modes.marginal_centre[k],
        modes.marginal_gradient[k],
        modes.marginal_curvature[k],
    )
    for p in range(d):
        work.step[p] = theta[p] - at[p]
        at[p] = theta[p]
    for p in range(d):
        shift = 0.0
        for q in range(d):
            shift += curvature[p, q] * work.step[q]
        modes.marginal_loss[k] += (gradient[p] + 0.5 * shift) * work.step[p]
        gradient[p] += shift
    modes.marginal_loss[k] += add_row(window, theta, work.inverse, curvature, gradient, i, s)


@inner
def gauss_newton_step(window: RewardWindow, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """Make one Gauss–Newton step with line search; return the decrement gradientᵀ curvature⁻¹ gradient."""
    s, d = prior.precision.size, arm_offset(prior.precision.size, window.size[2])
    theta, factor, step = modes.theta[k], modes.factor[k], work.step
    value = gradient_and_curvature(window, prior, modes, k, work)
    log_det = cholesky(factor, d)
    assign(step, work.gradient)
    decrement, largest = solve_lower(factor, step, d), 1.0
    solve_upper(factor, step, d)
    for a in range(window.size[2]):
        largest = max(largest, abs(step[arm_offset(s, a) + 1]))
    length = 1.0 / largest  # no sd may change by more than a factor e
    for _ in range(8):
        for p in range(d):
            work.candidate[p] = theta[p] - length * step[p]
        after = objective(window, prior, modes, k, work.candidate, work.inverse)
        if after <= value:
            for p in range(d):
                theta[p] = work.candidate[p]
            value = after
            break
        length *= 0.5
    modes.evidence[k] = -value - 0.5 * log_det
    return decrement
