"""Kalman filters side by side: the particles of a block, the same rewards, each with parameters of its own.

A particle's world, in units of the latent shock: z_t = Σ_j φ_j z_{t−j} + N(0, 1) after p free states N(0, start), and
r_t(a) = m_a + β_a z_t + N(0, noise_a). The arms' levels m_a = c + N(0, own) share an offset c about which nothing is
known (a flat prior), so the filter begins with the first reward and counts all others from it. Its state is
(m_1 … m_|A|, z_t … z_{t−p+1}); z_t stands at place |A| + t mod p, where it replaces z_{t−p}.

There are two other forms. WANDERING: there is no z; m_a is N(0, own) at every step, correlated by `keep` from one to
the next, and place |A| holds c itself. TURNING: the state is a point (u, v) of the plane, which turns and shrinks by
(φ_1, φ_2) = ρ(cos ω, sin ω) at every step and is shaken by N(0, 1) both ways; arms see β_a u + κ_a v of it.

_layout.py says where all this stands.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies.auto.layout import TURNING, WANDERING, Kind, Rows, entry
from larl.policies.auto.soa import (
    LANES,
    Floats,
    add,
    add_product,
    copy,
    invert,
    multiply,
    raise_to,
    subtract,
    subtract_product,
    sum_product,
)

LOG_EVERY = 8  # rewards; a product of so many variances is far from overflow
LEAST_SHARE = 1e-9  # of S in the variances that it is a sum of: what is less may be rounding, and even negative
LEAST_ERROR = 1e-7  # root mean square error that counts as such, as a share of the largest reward less the first


class History(NamedTuple):
    """The rewards that can still be replayed: that of step t is at t mod the size."""

    arm: NDArray[np.int64]  # −1 where there is none
    reward: Floats  # counted from the first


@inline
def fill(x: Floats, row: int, value: float) -> None:
    for lane in range(LANES):
        x[row, lane] = value


@inner
def begin(x: Floats, rows: Rows, kind: Kind, arm: int) -> None:
    """The belief after the first reward, from which the others are counted."""
    arms, z, cov, wander = rows.arms, rows.arms, rows.cov, kind.form == WANDERING
    for i in range(arms + kind.p):
        fill(x, rows.mean + i, 0.0)
    fill(x, rows.volume, 0.0)
    fill(x, rows.square, 0.0)
    for lane in range(LANES):
        start, own, noise = x[rows.start, lane], x[rows.own, lane], x[rows.noise + arm, lane]
        beta, kappa = 0.0, 0.0
        if wander:  # c = −m_a − e
            x[cov + entry(z, z), lane] = own + noise
        elif kind.p > 0:
            beta = x[rows.beta + arm, lane]
            x[cov + entry(z, z), lane] = start
        if kind.form == TURNING:
            kappa = x[rows.kappa + arm, lane]
            x[cov + entry(z, z + 1), lane] = 0.0
            x[cov + entry(z + 1, z + 1), lane] = start
        for i in range(arms):
            if wander:
                x[cov + entry(z, i), lane] = -own if i == arm else 0.0
            elif kind.p > 0:
                x[cov + entry(z, i), lane] = -beta * start
            if kind.form == TURNING:
                x[cov + entry(z + 1, i), lane] = -kappa * start
            for j in range(i + 1):
                if wander:
                    x[cov + entry(i, j), lane] = own if i == j else 0.0
                else:  # m_b = own_b − own_a − β_a z − e
                    apart = 0.0 if i == arm or j == arm else 2.0 if i == j else 1.0
                    x[cov + entry(i, j), lane] = apart * own + (beta * beta + kappa * kappa) * start + noise


@inline
def turn(x: Floats, rows: Rows, u: int, v: int) -> None:
    """Turn and shrink the plane of two rows."""
    multiply(x, rows.two, rows.phi + 1, u)
    multiply(x, rows.three, rows.phi + 1, v)
    multiply(x, u, rows.phi, u)
    subtract(x, u, rows.three)
    multiply(x, v, rows.phi, v)
    add(x, v, rows.two)


@inline
def forward(x: Floats, rows: Rows, kind: Kind, t: int) -> None:
    """From the belief after step t − 1 to the one before step t."""
    arms, mean, cov, work = rows.arms, rows.mean, rows.cov, rows.work
    if kind.form == WANDERING:
        multiply(x, rows.one, rows.keep, rows.keep)
        for i in range(arms):
            multiply(x, mean + i, mean + i, rows.keep)
            multiply(x, cov + entry(arms, i), cov + entry(arms, i), rows.keep)
            subtract(x, cov + entry(i, i), rows.own)
            for j in range(i + 1):
                multiply(x, cov + entry(i, j), cov + entry(i, j), rows.one)
            add(x, cov + entry(i, i), rows.own)
    elif kind.form == TURNING:
        u, v = cov + entry(arms, arms), cov + entry(arms + 1, arms + 1)
        turn(x, rows, mean + arms, mean + arms + 1)
        for i in range(arms):
            turn(x, rows, cov + entry(arms, i), cov + entry(arms + 1, i))
        copy(x, work, v - 1)  # the covariance of u and v
        turn(x, rows, u, v - 1)
        turn(x, rows, work, v)
        turn(x, rows, u, work)
        turn(x, rows, v - 1, v)
        fill(x, rows.one, 1.0)
        add(x, u, rows.one)
        add(x, v, rows.one)
    elif kind.p > 0:
        size, z = arms + min(kind.p, t), arms + t % kind.p
        for i in range(size):
            fill(x, work + i, 0.0)
        fill(x, rows.two, 0.0)
        if t < kind.p:
            copy(x, rows.one, rows.start)
        else:
            fill(x, rows.one, 1.0)
            place = z
            for j in range(kind.p):
                place = place - 1 if place > arms else size - 1
                add_product(x, rows.two, rows.phi + j, mean + place)
                for i in range(size):
                    add_product(x, work + i, rows.phi + j, cov + entry(i, place))
            place = z
            for j in range(kind.p):
                place = place - 1 if place > arms else size - 1
                add_product(x, rows.one, rows.phi + j, work + place)
        for i in range(size):
            copy(x, cov + entry(i, z), work + i)
        copy(x, cov + entry(z, z), rows.one)
        copy(x, mean + z, rows.two)


@inline
def observe(x: Floats, rows: Rows, kind: Kind, t: int, arm: int, reward: float) -> None:
    """Condition on the reward of step t. S goes into the row `product` only.

    In exact arithmetic S is at least the noise. Rounding can make it less where the noise is very small next to the
    variances of level and state, so S has a lower limit relative to these.
    """
    arms, mean, cov, work = rows.arms, rows.mean, rows.cov, rows.work
    beta, kappa = rows.beta + arm, rows.kappa + arm
    turning = kind.form == TURNING
    size, z = arms + (2 if turning else min(kind.p, t + 1)), arms
    scale, error, gain = rows.one, rows.two, rows.three
    least, square = rows.two, rows.three  # before these are error and gain
    if kind.p > 0:
        z += 0 if turning else t % kind.p
        for i in range(size):
            sum_product(x, work + i, cov + entry(i, arm), beta, cov + entry(i, z))
        if turning:
            for i in range(size):
                add_product(x, work + i, kappa, cov + entry(i, z + 1))
        sum_product(x, scale, work + arm, beta, work + z)
        if turning:
            add_product(x, scale, kappa, work + z + 1)
    else:
        for i in range(size):
            copy(x, work + i, cov + entry(i, arm))
        copy(x, scale, work + arm)
    add(x, scale, rows.noise + arm)
    copy(x, least, cov + entry(arm, arm))
    if kind.p > 0:
        multiply(x, square, beta, beta)
        add_product(x, least, square, cov + entry(z, z))
    if turning:
        multiply(x, square, kappa, kappa)
        add_product(x, least, square, cov + entry(z + 1, z + 1))
    fill(x, square, LEAST_SHARE)
    multiply(x, least, least, square)
    raise_to(x, scale, least)
    raise_to(x, scale, rows.noise + arm)
    fill(x, error, reward)
    subtract(x, error, mean + arm)
    if kind.p > 0:
        subtract_product(x, error, beta, mean + z)
    if turning:
        subtract_product(x, error, kappa, mean + z + 1)
    multiply(x, rows.product, rows.product, scale)
    invert(x, scale, scale)
    multiply(x, gain, error, scale)
    add_product(x, rows.square, error, gain)
    for i in range(size):
        add_product(x, mean + i, work + i, gain)
    for i in range(size):
        multiply(x, gain, work + i, scale)
        first = cov + (i * (i + 1) >> 1)
        for j in range(i + 1):
            subtract_product(x, first + j, gain, work + j)


@inline
def collect(x: Floats, rows: Rows) -> None:
    """Add the logarithm of the row `product` to `volume`; the product begins anew."""
    for lane in range(LANES):
        x[rows.volume, lane] += math.log(x[rows.product, lane])
        x[rows.product, lane] = 1.0


@inline
def likelihood(x: Floats, rows: Rows, target: int, seen: int, largest: float) -> None:
    """The logarithm of the density of `seen` rewards after the first, up to a constant: Student's, σ² integrated out.

    The largest reward less the first is `largest` in size. While it is 0 there is no scale, and no particle errs more
    than another. Σ e²/S has a lower limit relative to it: a particle that predicts repeated rewards ever more exactly
    would have an unlimited likelihood.
    """
    least = seen * (LEAST_ERROR * largest) ** 2
    for lane in range(LANES):
        square = max(x[rows.square, lane], least)
        x[target, lane] = -0.5 * (x[rows.volume, lane] + (seen * math.log(square) if square > 0.0 else 0.0))


@inner
def step(x: Floats, rows: Rows, kind: Kind, t: int, arm: int, reward: float, seen: int, largest: float) -> None:
    """Take in the reward of step t (the first only begins), `seen` others before it, then move on to step t + 1."""
    if t == 0:
        begin(x, rows, kind, arm)
    else:
        fill(x, rows.product, 1.0)
        observe(x, rows, kind, t, arm, reward)
        collect(x, rows)
    copy(x, rows.before, rows.after)
    likelihood(x, rows, rows.after, seen, largest)
    forward(x, rows, kind, t + 1)


@inner
def replay(
    x: Floats, rows: Rows, kind: Kind, history: History, first: int, later: int, end: int, seen: int, largest: float
) -> None:
    """Take in steps first … end − 1 anew: from nothing, or where first > 0 from the belief in `past`.

    The last of them has a reward, the `seen`-th of all.

    The belief before step `later`, if that is passed, is put into `later`.
    """
    size, filtered = history.arm.size, rows.past - rows.mean
    fill(x, rows.product, 1.0)
    if first > 0:
        for i in range(filtered):
            copy(x, rows.mean + i, rows.past + i)
    for t in range(first, end):
        if t == later:
            collect(x, rows)
            for i in range(filtered):
                copy(x, rows.later + i, rows.mean + i)
        if t == end - 1:
            collect(x, rows)
            likelihood(x, rows, rows.before, seen - 2, largest)
        if t == 0:
            begin(x, rows, kind, history.arm[0])
        elif history.arm[t % size] >= 0:
            observe(x, rows, kind, t, history.arm[t % size], history.reward[t % size])
        if t % LOG_EVERY == 0:
            collect(x, rows)
        forward(x, rows, kind, t + 1)
    collect(x, rows)
    likelihood(x, rows, rows.after, seen - 1, largest)
