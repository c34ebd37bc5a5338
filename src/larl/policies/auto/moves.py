"""Reweight, resample and move particles: iterated batch importance sampling (Chopin 2002, Biometrika 89).

A population holds particles of one model, for example one order p. Each reward multiplies a particle's weight by its
predictive density; the sum of a population's weights is its evidence. When the effective sample size is too small, the
particles are resampled and then moved by Metropolis steps that replay the rewards.

All coordinates of a particle are normal under the prior. In this order:

- ψ_1 … ψ_p: tanh ψ_j is the j-th partial autocorrelation of z, so z is stable. DAMPED_ROTATION has the logarithms of
  its decay rate and of its angle instead.
- b_a for each arm: β_a = ±b_a; the signs are stored separately.
- log q and logit w: the noise variance is q(wβ_a² + 1 − w), with β_a² + κ_a² in place of β_a² for DAMPED_ROTATION.
- the logarithms of the sd of the start and of the sd of the levels.
- INDEPENDENT_AR1: the logarithm of the decay rate. DAMPED_ROTATION: κ_a for each arm.

Parameters are bounded far outside the range that the priors make likely. Without bounds, the likelihood of repeated
equal rewards grows without limit as the noise shrinks, and a filter loses all digits if its variances differ too much.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner, kernel
from larl._core.random import bits_to_index, bits_to_uniform, random_bits
from larl.policies.auto.layout import AR_STATE, DAMPED_ROTATION, INDEPENDENT_AR1, FieldOffsets, ModelKind
from larl.policies.auto.particle_kalman import RewardHistory, replay_filter
from larl.policies.auto.proposal import BlockOwners, GaussianPrior, GaussianProposal, log_prior, log_proposal
from larl.policies.auto.soa import LANES, Floats

MOVES_KEY = np.uint64(0x243F6A8885A308D3)  # of the random stream that the moves use
# A normal draw is one of these 4096 quantiles, chosen by 12 random bits.
QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / 4096.0) for i in range(4096)])
FLIP_PROBABILITY = 0.1  # share of moves that flip the sign of one β
MIN_NOISE, MAX_NOISE = 1e-6, 1e6  # bounds of the noise variance
MAX_LOG_SD = 7.0  # of the start and of the levels
MAX_LOADING = 30.0  # of |β| and |κ|
MAX_PARTIAL_AUTOCORRELATION = 1.0 - 1e-7
LOG_NO_WEIGHT = -1e300  # log weight of a particle without weight
DrawCounter = NDArray[np.uint64]  # (1,) number of 64-bit draws so far


@inline
def coordinate_count(fields: FieldOffsets, kind: ModelKind) -> int:
    """Return the number of coordinates of a particle."""
    extra = 1 if kind.form == INDEPENDENT_AR1 else fields.arms if kind.form == DAMPED_ROTATION else 0
    return kind.p + fields.arms + 4 + extra


@inline
def clip_loading(size: float) -> float:
    """Return `size` limited to ±MAX_LOADING."""
    return min(max(size, -MAX_LOADING), MAX_LOADING)


@inner
def to_parameters(x: Floats, fields: FieldOffsets, kind: ModelKind) -> None:
    """Compute the parameters of every particle in a block from its coordinates."""
    p, phi, b = kind.p, fields.phi, fields.theta + kind.p
    rest = b + fields.arms
    for lane in range(LANES):
        if kind.form == DAMPED_ROTATION:
            shrink, angle = math.exp(-math.exp(x[fields.theta, lane])), math.exp(x[fields.theta + 1, lane])
            x[phi, lane], x[phi + 1, lane] = shrink * math.cos(angle), shrink * math.sin(angle)
        elif kind.form == AR_STATE:
            # Durbin–Levinson recursion, from partial autocorrelations to AR coefficients. It is separate from the one
            # in larl.statespace because it works in place on one column of the block: a call on vectors would copy
            # each particle's coefficients out of the structure of arrays and back, at every move.
            for j in range(p):
                partial = math.tanh(x[fields.theta + j, lane])
                partial = min(max(partial, -MAX_PARTIAL_AUTOCORRELATION), MAX_PARTIAL_AUTOCORRELATION)
                for i in range((j + 1) // 2):
                    low, high = x[phi + i, lane], x[phi + j - 1 - i, lane]
                    x[phi + i, lane] = low - partial * high
                    x[phi + j - 1 - i, lane] = high - partial * low
                x[phi + j, lane] = partial
        noise, share = math.exp(x[rest, lane]), 1.0 / (1.0 + math.exp(-x[rest + 1, lane]))
        for arm in range(fields.arms):
            size = clip_loading(x[b + arm, lane])
            other = clip_loading(x[rest + 4 + arm, lane]) if kind.form == DAMPED_ROTATION else 0.0
            x[fields.beta + arm, lane] = 1.0 if kind.form == INDEPENDENT_AR1 else x[fields.sign + arm, lane] * size
            x[fields.kappa + arm, lane] = other
            variance = noise * (share * (size * size + other * other) + 1.0 - share)
            x[fields.noise_variance + arm, lane] = min(max(variance, MIN_NOISE), MAX_NOISE)
        x[fields.start_variance, lane] = math.exp(2.0 * min(x[rest + 2, lane], MAX_LOG_SD))
        x[fields.level_variance, lane] = math.exp(2.0 * min(x[rest + 3, lane], MAX_LOG_SD))
        x[fields.persistence, lane] = math.exp(-math.exp(x[rest + 4, lane])) if kind.form == INDEPENDENT_AR1 else 1.0


@kernel
def to_parameters_all(
    data: Floats, owner: BlockOwners, fields: FieldOffsets, order: NDArray[np.int64], form: NDArray[np.int64]
) -> None:
    """Call `to_parameters` for every block."""
    for block in range(owner.size):
        to_parameters(data[block], fields, ModelKind(order[owner[block]], form[owner[block]]))


@inline
def next_bits(draws: DrawCounter) -> np.uint64:
    """Return the next 64 random bits."""
    draws[0] += np.uint64(1)
    return random_bits(MOVES_KEY, np.int64(draws[0]))  # type: ignore[arg-type]


@inner
def effective_share(
    data: Floats, owner: BlockOwners, population: int, fields: FieldOffsets, fraction: float
) -> tuple[float, float]:
    """Return effective sample size / number of particles, and evidence, after `fraction` of the last reward's gain."""
    top = -math.inf
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                gain = data[block, fields.log_lik, lane] - data[block, fields.log_lik_before, lane]
                top = max(top, data[block, fields.log_weight, lane] + fraction * gain)
    total, squares, count = 0.0, 0.0, 0
    for block in range(owner.size):
        if owner[block] == population:
            count += LANES
            for lane in range(LANES):
                gain = data[block, fields.log_lik, lane] - data[block, fields.log_lik_before, lane]
                value = math.exp(data[block, fields.log_weight, lane] + fraction * gain - top)
                total += value
                squares += value * value
    return total * total / (squares * count), top + math.log(total)


@inner
def reweight(data: Floats, owner: BlockOwners, population: int, fields: FieldOffsets, fraction: float) -> None:
    """Add `fraction` of the last reward's log-likelihood gain to the log weights."""
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                gain = data[block, fields.log_lik, lane] - data[block, fields.log_lik_before, lane]
                data[block, fields.log_weight, lane] += fraction * gain


@inner
def systematic_resample(
    data: Floats, owner: BlockOwners, population: int, fields: FieldOffsets, evidence: float, u: float
) -> None:
    """Resample in place (systematic): each particle gets its share of the evidence in copies, rounded up or down."""
    count, weight = 0, fields.log_weight
    for block in range(owner.size):
        if owner[block] == population:
            count += LANES
    cumulative, assigned = u, 0.0
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                cumulative += count * math.exp(data[block, weight, lane] - evidence)
                copies = min(math.floor(cumulative), count) - assigned
                assigned += copies
                data[block, weight, lane] = copies  # the weight row holds the number of copies until the end
    free_block, free_lane = 0, 0  # the next particle without a copy; it is overwritten by a duplicate
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                while data[block, weight, lane] > 1.0:
                    while owner[free_block] != population or data[free_block, weight, free_lane] > 0.0:
                        free_lane += 1
                        if free_lane == LANES:
                            free_block, free_lane = free_block + 1, 0
                    for i in range(weight):
                        data[free_block, i, free_lane] = data[block, i, lane]
                    data[free_block, weight, free_lane] = 1.0
                    data[block, weight, lane] -= 1.0
    for block in range(owner.size):
        if owner[block] == population:
            for lane in range(LANES):
                data[block, weight, lane] = evidence - math.log(count)


@inner
def propose(
    x: Floats,
    candidate: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    proposal: GaussianProposal,
    step_size: float,
    may_flip: bool,
    work: Floats,
    draws: DrawCounter,
) -> bool:
    """Write candidate coordinates; return whether the candidates are sign flips.

    The step is a preconditioned Crank–Nicolson step, which leaves the distribution `proposal` invariant. If `may_flip`,
    the step sometimes flips the sign of one β instead.
    """
    size, keep = coordinate_count(fields, kind), math.sqrt(1.0 - step_size * step_size)
    has_sign = may_flip and kind.p > 0 and kind.form != INDEPENDENT_AR1
    is_flip = has_sign and bits_to_uniform(next_bits(draws)) < FLIP_PROBABILITY
    for lane in range(LANES):
        bits, left = np.uint64(0), 0
        for arm in range(fields.arms):
            candidate[fields.sign + arm, lane] = x[fields.sign + arm, lane]
        if is_flip:
            candidate[fields.sign + bits_to_index(next_bits(draws), fields.arms), lane] *= -1.0
        for i in range(size):
            if left == 0:
                bits, left = next_bits(draws), 5
            work[i] = QUANTILES[np.int64(bits & np.uint64(4095))]
            bits, left = bits >> np.uint64(12), left - 1
            value = 0.0
            for j in range(i + 1):
                value += proposal.factor[i, j] * work[j]
            moved = proposal.mean[i] + keep * (x[fields.theta + i, lane] - proposal.mean[i]) + step_size * value
            candidate[fields.theta + i, lane] = x[fields.theta + i, lane] if is_flip else moved
    return is_flip


@inner
def move(
    x: Floats,
    candidate: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    prior: GaussianPrior,
    proposal: GaussianProposal,
    work: Floats,
    step_size: float,
    fraction: float,
    history: RewardHistory,
    first: int,
    next_window: int,
    time: int,
    seen: int,
    largest: float,
    draws: DrawCounter,
) -> float:
    """Make one Metropolis step of every particle in a block; return the accepted share, or −1 if signs were flipped.

    The target is the prior times the likelihood, with the last reward's likelihood to the power `fraction`. `candidate`
    is a scratch block.
    """
    size = coordinate_count(fields, kind)
    is_flip = propose(
        x=x,
        candidate=candidate,
        fields=fields,
        kind=kind,
        proposal=proposal,
        step_size=step_size,
        may_flip=first == 0,
        work=work,
        draws=draws,
    )
    if first > 0:
        for i in range(fields.window_start, fields.next_window_start):
            for lane in range(LANES):
                candidate[i, lane] = x[i, lane]
    to_parameters(candidate, fields, kind)
    replay_filter(
        x=candidate,
        fields=fields,
        kind=kind,
        history=history,
        first=first,
        next_window=next_window,
        end=time,
        seen=seen,
        largest=largest,
    )
    moved = 0
    for lane in range(LANES):
        ratio = (1.0 - fraction) * (candidate[fields.log_lik_before, lane] - x[fields.log_lik_before, lane])
        ratio += fraction * (candidate[fields.log_lik, lane] - x[fields.log_lik, lane])
        if not is_flip:
            before = log_prior(x, fields.theta, size, prior, lane)
            ratio += log_prior(candidate, fields.theta, size, prior, lane) - before
            ratio += log_proposal(x, fields.theta, size, proposal, work, lane)
            ratio -= log_proposal(candidate, fields.theta, size, proposal, work, lane)
        if math.log(1.0 - bits_to_uniform(next_bits(draws))) < ratio < math.inf:  # rejects a ratio that is nan or ∞
            moved += 1
            for i in range(fields.log_weight):
                x[i, lane] = candidate[i, lane]
    return -1.0 if is_flip else moved / LANES
