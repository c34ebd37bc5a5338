"""One latent state for all arms, fitted by maximum a posteriori. docs/theory.md (section 10) derives the model.

A reward r of arm a is read as y = ±(r − m_a)e^{−ℓ_a}, and e_t = y_t − Σ_{j<s} g_j y_{t−1−j} has variance 1, whichever
arms were played. Its negative log density is φ_ν(e_t) + ℓ_a, φ_ν(e) = ½(ν+1) log(1 + e²/ν). The first s steps, whose
lags are not all there, have an sd of their own: e^{ζ_t}, ζ_t = ζ(1 − RAMP·t/s).

The parameters in one vector: g_0 … g_{s−1}, the common offset o, ζ, then m_a, ℓ_a for each arm in the order of first
plays. Signs are discrete: a mode is one choice of them. A mode also holds what rows that left the window said: the
quadratic c + hᵀd + ½dᵀQd in d = parameters − `left_at`, each row taken at the parameters of the time it left.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NU = 30.0  # of the innovations: nearly normal
RAMP = 0.7
START, START_PRECISION = 0.5, 1.0  # ζ ~ N(0.5, 1)
APART, APART_NU = 0.7, 2.0  # (m_a − o)e^{−mean ℓ}/APART is Student's with ν = 2: far apart is nearly free
ALIKE = 4.0  # precision of ℓ_a around their mean
ANCHOR = 0.01  # precision of that mean around the size of the first difference between rewards
FLOOR = 1e-6  # no innovation sd far below 1e-3 of that size


class Rows(NamedTuple):
    """What was seen: the rows of a window, and before them the s lags of the first."""

    seat: Ints  # (window + s,) the arm's place in the order of first plays, −1 where the reward is missing
    value: Floats  # (window + s,) the reward in units of the policy's own
    y: Floats  # (window + s,) scratch
    row: Floats  # (d,) scratch: the gradient of a residual
    size: Ints  # (3,) entries; the first of them that is a row itself; arms seen


class Prior(NamedTuple):
    precision: Floats  # (s,) of g
    level: Floats  # (1,) what the mean of ℓ is anchored to


class Modes(NamedTuple):
    theta: Floats  # (modes, d)
    sign: Floats  # (modes, arms)
    factor: Floats  # (modes, d, d) lower Cholesky factor of the curvature
    evidence: Floats  # (modes,) Laplace: −objective − ½ log det curvature
    left_at: Floats  # (modes, d)
    left_slope: Floats  # (modes, d)
    left_curve: Floats  # (modes, d, d)
    left_value: Floats  # (modes,)


class Work(NamedTuple):
    slope: Floats  # (d,)
    step: Floats  # (d,)
    trial: Floats  # (d,)
    inverse: Floats  # (arms,) ±e^{−ℓ}


@inline
def place(s: int, seat: int) -> int:
    """Where an arm's m stands in the parameters; its ℓ is right behind. place(s, arms) is their number."""
    return s + 2 + 2 * seat


@inline
def loss(e: float, nu: float) -> float:
    """Student's negative log density, up to a constant."""
    return 0.5 * (nu + 1.0) * math.log1p(e * e / nu)


@inline
def pull(e: float, nu: float) -> float:
    """loss′(e)/e: the weight of a row."""
    return (nu + 1.0) / (nu + e * e)


@inline
def share(i: int, s: int) -> float:
    """How much of ζ entry i has."""
    return 1.0 - RAMP * i / s if i < s else 0.0


@inline
def readings(rows: Rows, theta: Floats, sign: Floats, inverse: Floats, s: int) -> None:
    """Write y of every entry."""
    for a in range(rows.size[2]):
        inverse[a] = sign[a] * math.exp(-theta[place(s, a) + 1])
    for i in range(rows.size[0]):
        a = rows.seat[i]
        rows.y[i] = (rows.value[i] - theta[place(s, a)]) * inverse[a] if a >= 0 else 0.0


@inline
def residual(rows: Rows, theta: Floats, i: int, s: int) -> float:
    """e of entry i; lags before the first step are left out."""
    e = rows.y[i]
    for j in range(min(i, s)):
        e -= theta[j] * rows.y[i - 1 - j]
    return e * math.exp(-theta[s + 1] * share(i, s)) if i < s else e


@inline
def gradient(rows: Rows, theta: Floats, inverse: Floats, i: int, s: int, e: float) -> None:
    """Write the gradient of e_i into `rows.row`."""
    row, d = rows.row, place(s, rows.size[2])
    for p in range(d):
        row[p] = 0.0
    a = place(s, rows.seat[i])
    row[a], row[a + 1] = -inverse[rows.seat[i]], -rows.y[i]
    for j in range(min(i, s)):
        past, seat = rows.y[i - 1 - j], rows.seat[i - 1 - j]
        if seat < 0:
            continue
        b = place(s, seat)
        row[j] = -past
        row[b] += theta[j] * inverse[seat]
        row[b + 1] += theta[j] * past
    if i < s:
        shrink = math.exp(-theta[s + 1] * share(i, s))
        for p in range(d):
            row[p] *= shrink
        row[s + 1] = -e * share(i, s)


@inline
def add(curve: Floats, slope: Floats, row: Floats, weight: float, e: float, d: int) -> None:
    """curve += weight·row·rowᵀ, slope += weight·e·row."""
    for p in range(d):
        scaled = weight * row[p]
        slope[p] += e * scaled
        for q in range(d):
            curve[p, q] += scaled * row[q]


@inline
def learn(rows: Rows, theta: Floats, inverse: Floats, curve: Floats, slope: Floats, i: int, s: int) -> float:
    """Add entry i to gradient and curvature; returns its part of the objective.

    The log sd v = ℓ_a + ζ_t enters as φ(e) + v. E[e ∂²e/∂v²] = 1 there, which products of gradients leave out.
    """
    e, a, part = residual(rows, theta, i, s), place(s, rows.seat[i]) + 1, share(i, s)
    gradient(rows, theta, inverse, i, s, e)
    add(curve, slope, rows.row, pull(e, NU), e, place(s, rows.size[2]))
    slope[a] += 1.0
    curve[a, a] += 1.0
    slope[s + 1] += part
    curve[s + 1, s + 1] += part * part
    curve[s + 1, a] += part
    curve[a, s + 1] += part
    return loss(e, NU) + theta[a] + part * theta[s + 1]


@inline
def mean_level(theta: Floats, known: int, s: int) -> float:
    """The mean of ℓ_a over the arms seen."""
    total = 0.0
    for a in range(known):
        total += theta[place(s, a) + 1]
    return total / known


@inline
def prior_value(prior: Prior, theta: Floats, known: int, s: int) -> float:
    """The prior's part of the objective. As o is free, one mean ℓ is taken off: that is what integrating o leaves."""
    mean = mean_level(theta, known, s)
    total = 0.5 * ANCHOR * (mean - prior.level[0]) ** 2 + 0.5 * START_PRECISION * (theta[s + 1] - START) ** 2 - mean
    for j in range(s):
        total += 0.5 * prior.precision[j] * theta[j] ** 2
    for a in range(known):
        p = place(s, a)
        total += loss((theta[p] - theta[s]) * math.exp(-mean) / APART, APART_NU)
        total += 0.5 * ALIKE * (theta[p + 1] - mean) ** 2
        total += 0.5 * FLOOR * math.exp(2.0 * (prior.level[0] - theta[p + 1]))
    return total


@inline
def prior_slope(prior: Prior, theta: Floats, row: Floats, curve: Floats, slope: Floats, known: int, s: int) -> None:
    """Add the prior to gradient and curvature."""
    mean, d = mean_level(theta, known, s), place(s, known)
    unit = math.exp(-mean) / APART
    slope[s + 1] += START_PRECISION * (theta[s + 1] - START)
    curve[s + 1, s + 1] += START_PRECISION
    for j in range(s):
        slope[j] += prior.precision[j] * theta[j]
        curve[j, j] += prior.precision[j]
    for a in range(known):
        p = place(s, a)
        apart = (theta[p] - theta[s]) * unit
        for q in range(d):
            row[q] = 0.0
        for b in range(known):
            row[place(s, b) + 1] = -apart / known
            curve[p + 1, place(s, b) + 1] += (ANCHOR / known - ALIKE) / known
        row[s], row[p] = -unit, unit
        add(curve, slope, row, pull(apart, APART_NU), apart, d)
        low = FLOOR * math.exp(2.0 * (prior.level[0] - theta[p + 1]))
        slope[p + 1] += ALIKE * (theta[p + 1] - mean) - low + (ANCHOR * (mean - prior.level[0]) - 1.0) / known
        curve[p + 1, p + 1] += ALIKE + 2.0 * low


@inner
def objective(rows: Rows, prior: Prior, modes: Modes, k: int, theta: Floats, inverse: Floats) -> float:
    """The negative log posterior of mode k's signs at `theta`, up to a constant."""
    s, d = prior.precision.size, place(prior.precision.size, rows.size[2])
    readings(rows, theta, modes.sign[k], inverse, s)
    total = prior_value(prior, theta, rows.size[2], s) + modes.left_value[k]
    for i in range(rows.size[1], rows.size[0]):
        if rows.seat[i] >= 0:
            level = theta[place(s, rows.seat[i]) + 1] + share(i, s) * theta[s + 1]
            total += loss(residual(rows, theta, i, s), NU) + level
    for p in range(d):
        half = modes.left_slope[k, p]
        for q in range(d):
            half += 0.5 * modes.left_curve[k, p, q] * (theta[q] - modes.left_at[k, q])
        total += half * (theta[p] - modes.left_at[k, p])
    return total


@inner
def assemble(rows: Rows, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """Write gradient and curvature (into `factor`) at mode k's parameters; returns the objective."""
    s, d = prior.precision.size, place(prior.precision.size, rows.size[2])
    theta, curve, slope = modes.theta[k], modes.factor[k], work.slope
    total = prior_value(prior, theta, rows.size[2], s) + modes.left_value[k]
    for p in range(d):
        moved = 0.0
        for q in range(d):
            curve[p, q] = modes.left_curve[k, p, q]
            moved += modes.left_curve[k, p, q] * (theta[q] - modes.left_at[k, q])
        total += (modes.left_slope[k, p] + 0.5 * moved) * (theta[p] - modes.left_at[k, p])
        slope[p] = modes.left_slope[k, p] + moved
    readings(rows, theta, modes.sign[k], work.inverse, s)
    for i in range(rows.size[1], rows.size[0]):
        if rows.seat[i] >= 0:
            total += learn(rows, theta, work.inverse, curve, slope, i, s)
    prior_slope(prior, theta, rows.row, curve, slope, rows.size[2], s)
    return total


@inner
def leave(rows: Rows, prior: Prior, modes: Modes, k: int, i: int, work: Work) -> None:
    """Fold entry i into mode k's quadratic at its parameters now, which become `left_at`; `readings` are of them."""
    s, d = prior.precision.size, place(prior.precision.size, rows.size[2])
    theta, at, slope, curve = modes.theta[k], modes.left_at[k], modes.left_slope[k], modes.left_curve[k]
    for p in range(d):
        work.step[p] = theta[p] - at[p]
        at[p] = theta[p]
    for p in range(d):
        moved = 0.0
        for q in range(d):
            moved += curve[p, q] * work.step[q]
        modes.left_value[k] += (slope[p] + 0.5 * moved) * work.step[p]
        slope[p] += moved
    modes.left_value[k] += learn(rows, theta, work.inverse, curve, slope, i, s)


@inner
def improve(rows: Rows, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """One Gauss–Newton step of mode k, shortened until the objective falls; returns slopeᵀ curvature⁻¹ slope."""
    s, d = prior.precision.size, place(prior.precision.size, rows.size[2])
    theta, factor, step = modes.theta[k], modes.factor[k], work.step
    value = assemble(rows, prior, modes, k, work)
    log_det = cholesky(factor, d)
    assign(step, work.slope)
    decrement, largest = solve_lower(factor, step, d), 1.0
    solve_upper(factor, step, d)
    for a in range(rows.size[2]):
        largest = max(largest, abs(step[place(s, a) + 1]))
    length = 1.0 / largest  # no sd changes by more than a factor e
    for _ in range(8):
        for p in range(d):
            work.trial[p] = theta[p] - length * step[p]
        after = objective(rows, prior, modes, k, work.trial, work.inverse)
        if after <= value:
            for p in range(d):
                theta[p] = work.trial[p]
            value = after
            break
        length *= 0.5
    modes.evidence[k] = -value - 0.5 * log_det
    return decrement
