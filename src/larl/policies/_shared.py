"""The shared model: all arms read one latent state. docs/theory.md derives it.

With y_t = ±(r_t − m_a)e^{−ℓ_a} for the arm a played at t, e_t = y_t − Σ_{j<s} g_j y_{t−1−j} has variance 1. A reward's
negative log density is φ(e_t) + ℓ_a, with φ(e) = ½(ν+1) log(1 + e²/ν): Student's, as a trial may begin far out.
Parameters in one vector: g_0 … g_{s−1}, then m_a, ℓ_a for each arm; signs are a discrete mode of their own.

Each mode holds its own parameters, the Cholesky factor of its curvature, and what rows that left the window have said: a
quadratic q + hᵀd + ½dᵀQd in d = parameters − reference, taken at the parameters of the time they left.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._compile import inline, inner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """What was seen: a window of rows, and room for the s lags of its first."""

    arm: Ints  # (window + s,)
    value: Floats  # (window + s,)
    y: Floats  # (window + s,) scratch
    row: Floats  # (d,) scratch
    size: Ints  # (3,) entries filled; first entry that is a row of its own; arms seen
    plays: Floats  # (arms,) rows of each arm, those that left among them


class Prior(NamedTuple):
    precision: Floats  # (s,) of g
    kappa: float
    tail: float
    spread: float  # 1/τ² of ℓ_a around their mean
    anchor: float  # precision of that mean around `level`
    nu: float
    start: float
    start_spread: float
    floor: float
    level: Floats  # (1,)


class Modes(NamedTuple):
    theta: Floats  # (modes, d)
    sign: Floats  # (modes, arms)
    factor: Floats  # (modes, d, d) Cholesky factor of the curvature
    evidence: Floats  # (modes,)
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
def readings(rows: Rows, theta: Floats, sign: Floats, inverse: Floats, s: int) -> None:
    """Write y of every entry."""
    for a in range(rows.size[2]):
        inverse[a] = sign[a] * math.exp(-theta[s + 3 + 2 * a])
    for i in range(rows.size[0]):
        a = rows.arm[i]
        rows.y[i] = (rows.value[i] - theta[s + 2 + 2 * a]) * inverse[a]


@inline
def residual(rows: Rows, theta: Floats, i: int, s: int) -> float:
    """e of entry i."""
    e = rows.y[i]
    for j in range(min(i, s)):
        e -= theta[j] * rows.y[i - 1 - j]
    return e * math.exp(-theta[s + 1]) if i < s else e


@inline
def loss(e: float, nu: float) -> float:
    return 0.5 * (nu + 1.0) * math.log1p(e * e / nu)


@inline
def pull(e: float, nu: float) -> float:
    return (nu + 1.0) / (nu + e * e)


@inline
def jacobian(rows: Rows, theta: Floats, inverse: Floats, i: int, s: int, e: float) -> None:
    """Write the gradient of e_i into `rows.row`."""
    row = rows.row
    for k in range(s + 2 + 2 * rows.size[2]):
        row[k] = 0.0
    a = s + 2 + 2 * rows.arm[i]
    row[a] = -inverse[rows.arm[i]]
    row[a + 1] = -rows.y[i]
    for j in range(min(i, s)):
        past = rows.y[i - 1 - j]
        b = s + 2 + 2 * rows.arm[i - 1 - j]
        row[j] = -past
        row[b] += theta[j] * inverse[rows.arm[i - 1 - j]]
        row[b + 1] += theta[j] * past
    if i < s:
        shrink = math.exp(-theta[s + 1])
        for k in range(s + 2 + 2 * rows.size[2]):
            row[k] *= shrink
        row[s + 1] = -e


@inline
def level(rows: Rows, theta: Floats, s: int) -> float:
    """The mean of ℓ_a over the arms seen."""
    total = 0.0
    for a in range(rows.size[2]):
        total += theta[s + 3 + 2 * a]
    return total / rows.size[2]


@inline
def prior_value(rows: Rows, prior: Prior, theta: Floats, s: int) -> float:
    """What the prior adds to the objective."""
    mean = level(rows, theta, s)
    total = 0.5 * prior.anchor * (mean - prior.level[0]) ** 2 - mean
    total += 0.5 * prior.start_spread * (theta[s + 1] - prior.start) ** 2
    for j in range(s):
        total += 0.5 * prior.precision[j] * theta[j] ** 2
    for a in range(rows.size[2]):
        ell = theta[s + 3 + 2 * a]
        apart = (theta[s + 2 + 2 * a] - theta[s]) * math.exp(-mean) / prior.kappa
        total += loss(apart, prior.tail) + 0.5 * prior.spread * (ell - mean) ** 2
        total += 0.5 * prior.floor * math.exp(2.0 * (prior.level[0] - ell))
    return total


@inner
def objective(rows: Rows, prior: Prior, modes: Modes, k: int, theta: Floats, inverse: Floats) -> float:
    """The negative log posterior at `theta`."""
    s, nu = prior.precision.size, prior.nu
    readings(rows, theta, modes.sign[k], inverse, s)
    total = prior_value(rows, prior, theta, s) + modes.left_value[k]
    for i in range(rows.size[1], rows.size[0]):
        e = residual(rows, theta, i, s)
        total += loss(e, nu) + theta[s + 3 + 2 * rows.arm[i]]
        if i < s:
            total += theta[s + 1]
    d = s + 2 + 2 * rows.size[2]
    for p in range(d):
        half = modes.left_slope[k, p]
        for q in range(d):
            half += 0.5 * modes.left_curve[k, p, q] * (theta[q] - modes.left_at[k, q])
        total += half * (theta[p] - modes.left_at[k, p])
    return total


@inline
def add_row(curve: Floats, slope: Floats, row: Floats, weight: float, e: float, d: int) -> None:
    """curve += weight·row·rowᵀ and slope += weight·e·row."""
    for p in range(d):
        scaled = weight * row[p]
        slope[p] += e * scaled
        for q in range(d):
            curve[p, q] += scaled * row[q]


@inline
def learn(rows: Rows, prior: Prior, theta: Floats, inverse: Floats, curve: Floats, slope: Floats, i: int) -> float:
    """Add entry i to gradient and curvature; returns its part of the objective."""
    s = prior.precision.size
    e, a = residual(rows, theta, i, s), s + 3 + 2 * rows.arm[i]
    jacobian(rows, theta, inverse, i, s, e)
    add_row(curve, slope, rows.row, pull(e, prior.nu), e, s + 2 + 2 * rows.size[2])
    slope[a] += 1.0
    curve[a, a] += 1.0
    if i >= s:
        return loss(e, prior.nu) + theta[a]
    slope[s + 1] += 1.0
    curve[s + 1, s + 1] += 1.0
    curve[s + 1, a] += 1.0
    curve[a, s + 1] += 1.0
    return loss(e, prior.nu) + theta[a] + theta[s + 1]


@inner
def assemble(rows: Rows, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """Write gradient and Gauss–Newton curvature at the mode's parameters; returns the objective."""
    s, known = prior.precision.size, rows.size[2]
    d = s + 2 + 2 * known
    theta, curve, slope, row = modes.theta[k], modes.factor[k], work.slope, rows.row
    total = prior_value(rows, prior, theta, s) + modes.left_value[k]
    for p in range(d):
        moved = 0.0
        for q in range(d):
            curve[p, q] = modes.left_curve[k, p, q]
            moved += modes.left_curve[k, p, q] * (theta[q] - modes.left_at[k, q])
        total += (modes.left_slope[k, p] + 0.5 * moved) * (theta[p] - modes.left_at[k, p])
        slope[p] = modes.left_slope[k, p] + moved
    readings(rows, theta, modes.sign[k], work.inverse, s)
    for i in range(rows.size[1], rows.size[0]):
        total += learn(rows, prior, theta, work.inverse, curve, slope, i)
    mean = level(rows, theta, s)
    unit = math.exp(-mean) / prior.kappa
    for j in range(s):
        slope[j] += prior.precision[j] * theta[j]
        curve[j, j] += prior.precision[j]
    slope[s + 1] += prior.start_spread * (theta[s + 1] - prior.start)
    curve[s + 1, s + 1] += prior.start_spread
    for a in range(known):
        p = s + 3 + 2 * a
        apart = (theta[p - 1] - theta[s]) * unit
        for q in range(d):
            row[q] = 0.0
        for b in range(known):
            row[s + 3 + 2 * b] = -apart / known
            curve[p, s + 3 + 2 * b] += (prior.anchor / known - prior.spread) / known
        row[s], row[p - 1] = -unit, unit
        add_row(curve, slope, row, pull(apart, prior.tail), apart, d)
        low = prior.floor * math.exp(2.0 * (prior.level[0] - theta[p]))
        slope[p] += prior.spread * (theta[p] - mean) - low + (prior.anchor * (mean - prior.level[0]) - 1.0) / known
        curve[p, p] += prior.spread + 2.0 * low
    return total


@inner
def cholesky(matrix: Floats, d: int) -> float:
    """Overwrite the lower triangle by its factor; returns log det. A pivot that is not positive is made so."""
    total = 0.0
    for i in range(d):
        top = matrix[i, i]
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j]
        pivot = top
        for k in range(i):
            pivot -= matrix[i, k] ** 2
        pivot = max(pivot, 1e-10 * abs(top) + 1e-300)
        matrix[i, i] = math.sqrt(pivot)
        total += math.log(pivot)
    return total


@inline
def solve_lower(factor: Floats, x: Floats, d: int) -> float:
    """x ← L⁻¹x; returns its squared length."""
    square = 0.0
    for i in range(d):
        value = x[i]
        for j in range(i):
            value -= factor[i, j] * x[j]
        x[i] = value / factor[i, i]
        square += x[i] * x[i]
    return square


@inline
def solve_upper(factor: Floats, x: Floats, d: int) -> None:
    """x ← L⁻ᵀx."""
    for i in range(d - 1, -1, -1):
        x[i] /= factor[i, i]
        for j in range(i):
            x[j] -= factor[i, j] * x[i]


@inner
def improve(rows: Rows, prior: Prior, modes: Modes, k: int, work: Work) -> float:
    """One damped Gauss–Newton step of a mode; returns the decrement gᵀH⁻¹g."""
    s = prior.precision.size
    d = s + 2 + 2 * rows.size[2]
    theta, step = modes.theta[k], work.step
    value = assemble(rows, prior, modes, k, work)
    determinant = cholesky(modes.factor[k], d)
    for p in range(d):
        step[p] = work.slope[p]
    decrement = solve_lower(modes.factor[k], step, d)
    solve_upper(modes.factor[k], step, d)
    largest = 0.0
    for a in range(rows.size[2]):
        largest = max(largest, abs(step[s + 3 + 2 * a]))
    length = 1.0 / max(1.0, largest)
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
    modes.evidence[k] = -value - 0.5 * determinant
    return decrement


@inner
def leave(rows: Rows, prior: Prior, modes: Modes, k: int, i: int, work: Work) -> None:
    """Fold entry i into the quadratic of a mode, at the mode's parameters (`readings` must be of them)."""
    s = prior.precision.size
    d = s + 2 + 2 * rows.size[2]
    theta = modes.theta[k]
    at, slope, curve = modes.left_at[k], modes.left_slope[k], modes.left_curve[k]
    for p in range(d):
        work.step[p] = theta[p] - at[p]
    for p in range(d):
        moved = 0.0
        for q in range(d):
            moved += curve[p, q] * work.step[q]
        modes.left_value[k] += (slope[p] + 0.5 * moved) * work.step[p]
        slope[p] += moved
        at[p] = theta[p]
    modes.left_value[k] += learn(rows, prior, theta, work.inverse, curve, slope, i)
