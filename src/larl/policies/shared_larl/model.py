"""Maximum a posteriori fit of one latent AR state for all arms (docs/theory.md, section 10, derives the model).

A reward r of arm a is a reading y = ±(r − m_a)e^{−ℓ_a} of the state. The innovation e_t = y_t − Σ_{j<s} g_j y_{t−1−j}
has variance 1, whichever arms were played. Its negative log density is φ_ν(e_t) + ℓ_a, with the Student-t loss
φ_ν(e) = ½(ν+1) log(1 + e²/ν). The first s steps, which have fewer than s lags, have the sd e^{ζ_t} instead of 1, with
ζ_t = ζ(1 − START_RAMP·t/s).

With a context x of p numbers, m_a + η_aᵀx takes the place of m_a. The effects η_aj of number j shrink towards a common
effect h_j, and h_j towards 0. How much is learnt: modes.py estimates the variances of their prior.

The parameter vector is g_0 … g_{s−1}, the common offset o, ζ, h_1 … h_p, then m_a, ℓ_a, η_a1 … η_ap for each arm in the
order of first plays; the position in that order is the arm's slot. A mode is one choice of signs. A mode also has a
quadratic approximation of the loss of all rows that left the window: c + hᵀd + ½dᵀQd in d = parameters −
`marginal_centre`. Each row is linearised at the parameters of the time it left.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper
from larl.policies._student_t import irls_weight, unit_scale_loss
from larl.policies.shared_larl.prior import Floats, Prior, add_outer_product, add_prior, arm_offset, prior_loss

Ints = NDArray[np.int64]

NU = 30.0  # degrees of freedom of the innovations: nearly normal
START_RAMP = 0.7  # how much ζ_t falls over the first s steps


class RewardWindow(NamedTuple):
    """The last rewards: the rows of the window, after the s lags of its first row."""

    slot: Ints  # (window + s,) slot of the arm, −1 where the reward is missing
    value: Floats  # (window + s,) (reward − offset)/scale
    context: Floats  # (window + s, p) context x of each entry
    y: Floats  # (window + s,) scratch: readings of the state
    row: Floats  # (d,) scratch: gradient of a residual
    size: Ints  # (3,) number of entries; index of the first entry that is a row; number of arms played so far


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
    effect_variance: Floats  # (modes, p, 2) v_j and w_j, the prior variances of a context's effects (prior.py)


class Work(NamedTuple):
    gradient: Floats  # (d,)
    step: Floats  # (d,)
    candidate: Floats  # (d,)
    inverse: Floats  # (arms,) ±e^{−ℓ}


@inline
def sizes(window: RewardWindow, prior: Prior) -> tuple[int, int]:
    """Return s and the number of parameters of the arms played so far."""
    s = prior.precision.size
    return s, arm_offset(s, window.context.shape[1], window.size[2])


@inline
def start_share(i: int, s: int) -> float:
    """Return the factor of ζ in the log sd of entry i."""
    return 1.0 - START_RAMP * i / s if i < s else 0.0


@inline
def effect(theta: Floats, first: int, context: Floats) -> float:
    """Return the effect of a context, whose coefficients begin at index `first` of the parameters."""
    total = 0.0
    for j in range(context.size):
        total += theta[first + j] * context[j]
    return total


@inline
def write_readings(window: RewardWindow, theta: Floats, sign: Floats, inverse: Floats, s: int) -> None:
    """Write the reading y of every entry."""
    contexts = window.context.shape[1]
    for a in range(window.size[2]):
        inverse[a] = sign[a] * math.exp(-theta[arm_offset(s, contexts, a) + 1])
    for i in range(window.size[0]):
        a = window.slot[i]
        window.y[i] = 0.0
        if a >= 0:
            at = arm_offset(s, contexts, a)
            window.y[i] = (window.value[i] - theta[at] - effect(theta, at + 2, window.context[i])) * inverse[a]


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
    row, contexts = window.row, window.context.shape[1]
    d, a = arm_offset(s, contexts, window.size[2]), arm_offset(s, contexts, window.slot[i])
    for p in range(d):
        row[p] = 0.0
    row[a], row[a + 1] = -inverse[window.slot[i]], -window.y[i]
    for k in range(contexts):
        row[a + 2 + k] = row[a] * window.context[i, k]
    for j in range(min(i, s)):
        reading, slot = window.y[i - 1 - j], window.slot[i - 1 - j]
        if slot < 0:
            continue
        b = arm_offset(s, contexts, slot)
        row[j] = -reading
        row[b] += theta[j] * inverse[slot]
        row[b + 1] += theta[j] * reading
        for k in range(contexts):
            row[b + 2 + k] += theta[j] * inverse[slot] * window.context[i - 1 - j, k]
    if i < s:
        shrink = math.exp(-theta[s + 1] * start_share(i, s))
        for p in range(d):
            row[p] *= shrink
        row[s + 1] = -e * start_share(i, s)


@inline
def add_row(
    window: RewardWindow, theta: Floats, inverse: Floats, curvature: Floats, gradient: Floats, i: int, s: int
) -> float:
    """Add entry i to gradient and curvature; return its loss.

    The log sd v = ℓ_a + ζ_t enters as φ(e) + v. The curvature in v gets E[e ∂²e/∂v²] = 1 in addition to the product of
    gradients, which does not contain it.
    """
    e, part, contexts = residual(window, theta, i, s), start_share(i, s), window.context.shape[1]
    a, d = arm_offset(s, contexts, window.slot[i]) + 1, arm_offset(s, contexts, window.size[2])
    write_residual_gradient(window, theta, inverse, i, s, e)
    add_outer_product(curvature, gradient, window.row, irls_weight(e, NU), e, d)
    gradient[a] += 1.0
    curvature[a, a] += 1.0
    gradient[s + 1] += part
    curvature[s + 1, s + 1] += part * part
    curvature[s + 1, a] += part
    curvature[a, s + 1] += part
    return unit_scale_loss(e, NU) + theta[a] + part * theta[s + 1]


@inner
def objective(window: RewardWindow, prior: Prior, modes: Modes, k: int, theta: Floats, inverse: Floats) -> float:
    """Return the negative log posterior at `theta` with the signs of mode k, up to a constant."""
    (s, d), contexts = sizes(window, prior), window.context.shape[1]
    write_readings(window, theta, modes.sign[k], inverse, s)
    total = prior_loss(prior, theta, modes.effect_variance[k], window.size[2], s) + modes.marginal_loss[k]
    for i in range(window.size[1], window.size[0]):
        if window.slot[i] >= 0:
            level = theta[arm_offset(s, contexts, window.slot[i]) + 1] + start_share(i, s) * theta[s + 1]
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
    s, d = sizes(window, prior)
    theta, curvature, gradient = modes.theta[k], modes.factor[k], work.gradient
    total = prior_loss(prior, theta, modes.effect_variance[k], window.size[2], s) + modes.marginal_loss[k]
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
    add_prior(prior, theta, modes.effect_variance[k], window.row, curvature, gradient, window.size[2], s)
    return total


@inner
def marginalise_row(window: RewardWindow, prior: Prior, modes: Modes, k: int, i: int, work: Work) -> None:
    """Add entry i to the quadratic of mode k, expanded at its current parameters, for which `y` must be current."""
    s, d = sizes(window, prior)
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
    s, d = sizes(window, prior)
    theta, factor, step = modes.theta[k], modes.factor[k], work.step
    value = gradient_and_curvature(window, prior, modes, k, work)
    log_det = cholesky(factor, d)
    assign(step, work.gradient)
    decrement, largest = solve_lower(factor, step, d), 1.0
    solve_upper(factor, step, d)
    for a in range(window.size[2]):
        largest = max(largest, abs(step[arm_offset(s, window.context.shape[1], a) + 1]))
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
