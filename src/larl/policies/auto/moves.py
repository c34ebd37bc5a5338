"""Populations of particles over the parameters of a latent AR bandit (iterated batch importance sampling, Chopin 2002).

A population holds particles of one kind, say one order p. Each reward multiplies a particle's weight by its predictive
density; the sum of a population's weights is its evidence. Where too few particles carry the weight they are resampled,
and moved by Metropolis steps that replay the rewards.

A particle's coordinates are all normal a priori: ψ_1 … ψ_p, whose tanh are the partial autocorrelations of z (so z is
stable); b_a, where β_a = ±b_a and the sign is kept apart; log q and logit w of the noise q(wβ_a² + 1 − w), of which the
share w scales with β²; the logarithms of the sd of the start and of the sd between levels. Where levels wander, last
comes the logarithm of the rate. Where the state turns, the logarithms of its rate of shrinking and of its angle stand
in place of ψ, and κ_a come last; there β² + κ² is what noise scales with.

Parameters are bounded, far outside of what the priors call likely: rewards that repeat are likelier the less noise
there is, without limit, and a filter loses all digits where variances differ by more than they have.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner, kernel
from larl._core.random import bits_to_index, bits_to_uniform, random_bits
from larl.policies.auto.layout import LATENT, TURNING, WANDERING, Kind, Rows
from larl.policies.auto.particle_kalman import History, replay
from larl.policies.auto.proposal import Blocks, Normal, Prior, log_normal, log_prior
from larl.policies.auto.soa import LANES, Floats

KEY = np.uint64(0x243F6A8885A308D3)
# A normal draw is one of these, found by 12 bits of a word.
QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / 4096.0) for i in range(4096)])
FLIP = 0.1  # share of moves that turn the sign of one β
LEAST_NOISE, LARGEST_NOISE = 1e-6, 1e6  # its variance
LARGEST_LOG_SD = 7.0  # of the start and of levels
LARGEST_SIZE = 30.0  # of β and κ
LARGEST_PARTIAL = 1.0 - 1e-7  # autocorrelation
LOST = -1e300  # log weight of a particle that counts for nothing
Words = NDArray[np.uint64]  # (1,) how many words have been drawn


@inline
def coordinates(rows: Rows, kind: Kind) -> int:
    return kind.p + rows.arms + 4 + (1 if kind.form == WANDERING else rows.arms if kind.form == TURNING else 0)


@inline
def bounded(size: float) -> float:
    return min(max(size, -LARGEST_SIZE), LARGEST_SIZE)


@inner
def derive(x: Floats, rows: Rows, kind: Kind) -> None:
    """Every particle's parameters from its coordinates."""
    p, phi, b = kind.p, rows.phi, rows.theta + kind.p
    rest = b + rows.arms
    for lane in range(LANES):
        if kind.form == TURNING:
            shrink, angle = math.exp(-math.exp(x[rows.theta, lane])), math.exp(x[rows.theta + 1, lane])
            x[phi, lane], x[phi + 1, lane] = shrink * math.cos(angle), shrink * math.sin(angle)
        elif kind.form == LATENT:
            for j in range(p):  # Durbin & Levinson: from partial autocorrelations to coefficients
                partial = math.tanh(x[rows.theta + j, lane])
                partial = min(max(partial, -LARGEST_PARTIAL), LARGEST_PARTIAL)
                for i in range((j + 1) // 2):
                    low, high = x[phi + i, lane], x[phi + j - 1 - i, lane]
                    x[phi + i, lane] = low - partial * high
                    x[phi + j - 1 - i, lane] = high - partial * low
                x[phi + j, lane] = partial
        noise, share = math.exp(x[rest, lane]), 1.0 / (1.0 + math.exp(-x[rest + 1, lane]))
        for arm in range(rows.arms):
            size, other = bounded(x[b + arm, lane]), bounded(x[rest + 4 + arm, lane]) if kind.form == TURNING else 0.0
            x[rows.beta + arm, lane] = 1.0 if kind.form == WANDERING else x[rows.sign + arm, lane] * size
            x[rows.kappa + arm, lane] = other
            variance = noise * (share * (size * size + other * other) + 1.0 - share)
            x[rows.noise + arm, lane] = min(max(variance, LEAST_NOISE), LARGEST_NOISE)
        x[rows.start, lane] = math.exp(2.0 * min(x[rest + 2, lane], LARGEST_LOG_SD))
        x[rows.own, lane] = math.exp(2.0 * min(x[rest + 3, lane], LARGEST_LOG_SD))
        x[rows.keep, lane] = math.exp(-math.exp(x[rest + 4, lane])) if kind.form == WANDERING else 1.0


@kernel
def derive_all(data: Floats, owner: Blocks, rows: Rows, order: NDArray[np.int64], form: NDArray[np.int64]) -> None:
    """The same for all blocks."""
    for block in range(owner.size):
        derive(data[block], rows, Kind(order[owner[block]], form[owner[block]]))


@inline
def next_word(words: Words) -> np.uint64:
    words[0] += np.uint64(1)
    return random_bits(KEY, np.int64(words[0]))  # type: ignore[arg-type]


@inner
def effective(data: Floats, owner: Blocks, mine: int, rows: Rows, part: float) -> tuple[float, float]:
    """Once `part` of the last reward is taken in: the share of a population's particles that counts, its evidence."""
    top = -math.inf
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                gain = data[block, rows.after, lane] - data[block, rows.before, lane]
                top = max(top, data[block, rows.weight, lane] + part * gain)
    total, squares, many = 0.0, 0.0, 0
    for block in range(owner.size):
        if owner[block] == mine:
            many += LANES
            for lane in range(LANES):
                gain = data[block, rows.after, lane] - data[block, rows.before, lane]
                value = math.exp(data[block, rows.weight, lane] + part * gain - top)
                total += value
                squares += value * value
    return total * total / (squares * many), top + math.log(total)


@inner
def weigh(data: Floats, owner: Blocks, mine: int, rows: Rows, part: float) -> None:
    """Take `part` of the last reward into the weights."""
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                gain = data[block, rows.after, lane] - data[block, rows.before, lane]
                data[block, rows.weight, lane] += part * gain


@inner
def resample(data: Floats, owner: Blocks, mine: int, rows: Rows, evidence: float, u: float) -> None:
    """Systematic resampling in place: of each particle as many copies as its share of the evidence, within one."""
    many, weight = 0, rows.weight
    for block in range(owner.size):
        if owner[block] == mine:
            many += LANES
    reached, given = u, 0.0
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                reached += many * math.exp(data[block, weight, lane] - evidence)
                copies = min(math.floor(reached), many) - given
                given += copies
                data[block, weight, lane] = copies  # for now
    empty, gap = 0, 0  # particles with no copy give their place to those with more than one
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                while data[block, weight, lane] > 1.0:
                    while owner[empty] != mine or data[empty, weight, gap] > 0.0:
                        gap += 1
                        if gap == LANES:
                            empty, gap = empty + 1, 0
                    for i in range(weight):
                        data[empty, i, gap] = data[block, i, lane]
                    data[empty, weight, gap] = 1.0
                    data[block, weight, lane] -= 1.0
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                data[block, weight, lane] = evidence - math.log(many)


@inner
def propose(
    x: Floats,
    trial: Floats,
    rows: Rows,
    kind: Kind,
    normal: Normal,
    stride: float,
    free: bool,
    work: Floats,
    words: Words,
) -> bool:
    """New coordinates: a step that leaves `normal` as it is (preconditioned Crank–Nicolson).

    Where `free` it may be one sign turned instead, which is said.
    """
    size, keep = coordinates(rows, kind), math.sqrt(1.0 - stride * stride)
    turn = free and kind.p > 0 and kind.form != WANDERING and bits_to_uniform(next_word(words)) < FLIP
    for lane in range(LANES):
        bits, left = np.uint64(0), 0
        for arm in range(rows.arms):
            trial[rows.sign + arm, lane] = x[rows.sign + arm, lane]
        if turn:
            trial[rows.sign + bits_to_index(next_word(words), rows.arms), lane] *= -1.0
        for i in range(size):
            if left == 0:
                bits, left = next_word(words), 5
            work[i] = QUANTILES[np.int64(bits & np.uint64(4095))]
            bits, left = bits >> np.uint64(12), left - 1
            value = 0.0
            for j in range(i + 1):
                value += normal.factor[i, j] * work[j]
            moved = normal.mean[i] + keep * (x[rows.theta + i, lane] - normal.mean[i]) + stride * value
            trial[rows.theta + i, lane] = x[rows.theta + i, lane] if turn else moved
    return turn


@inner
def move(
    x: Floats,
    trial: Floats,
    rows: Rows,
    kind: Kind,
    prior: Prior,
    normal: Normal,
    work: Floats,
    stride: float,
    part: float,
    history: History,
    first: int,
    later: int,
    time: int,
    seen: int,
    largest: float,
    words: Words,
) -> float:
    """One Metropolis step of every particle of a block; returns the share that moved, or −1 where signs were turned.

    The target is the prior times the likelihood, of the last reward only `part`. `trial` is a block to work in.
    """
    size = coordinates(rows, kind)
    turned = propose(x, trial, rows, kind, normal, stride, first == 0, work, words)
    if first > 0:
        for i in range(rows.past, rows.later):
            for lane in range(LANES):
                trial[i, lane] = x[i, lane]
    derive(trial, rows, kind)
    replay(trial, rows, kind, history, first, later, time, seen, largest)
    moved = 0
    for lane in range(LANES):
        ratio = (1.0 - part) * (trial[rows.before, lane] - x[rows.before, lane])
        ratio += part * (trial[rows.after, lane] - x[rows.after, lane])
        if not turned:
            ratio += log_prior(trial, rows.theta, size, prior, lane) - log_prior(x, rows.theta, size, prior, lane)
            ratio += log_normal(x, rows.theta, size, normal, work, lane)
            ratio -= log_normal(trial, rows.theta, size, normal, work, lane)
        if math.log(1.0 - bits_to_uniform(next_word(words))) < ratio < math.inf:  # no move to what is not a number
            moved += 1
            for i in range(rows.weight):
                x[i, lane] = trial[i, lane]
    return -1.0 if turned else moved / LANES
