"""Reweight, resample and move particles: iterated batch importance sampling (Chopin 2002, Biometrika 89).

A population holds particles of one model, for example one order p. Each reward multiplies a particle's weight by its
predictive density; the sum of a population's weights is its evidence. When the effective sample size is too small, the
particles are resampled and then moved by Metropolis steps that replay the rewards.

`x` holds the blocks of one population, one below the other, each with `fields.end` rows.
"""

import math
from statistics import NormalDist

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import bits_to_index, bits_to_uniform, random_bits
from larl.policies.auto.layout import INDEPENDENT_AR1, FieldOffsets, ModelKind, coordinate_count
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.particle_kalman import RewardHistory, replay_filter
from larl.policies.auto.proposal import GaussianPrior, GaussianProposal, log_prior, log_proposal
from larl.policies.auto.soa import LANES, Floats
from larl.policies.auto.state import DrawCounter

MOVES_KEY = np.uint64(0x243F6A8885A308D3)  # of the random stream that the moves use
# A normal draw is one of these 4096 quantiles, chosen by 12 random bits.
QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / 4096.0) for i in range(4096)])
FLIP_PROBABILITY = 0.1  # share of moves that flip the sign of one β


@inline
def next_bits(draws: DrawCounter) -> np.uint64:
    """Return the next 64 random bits."""
    draws[0] += np.uint64(1)
    return random_bits(MOVES_KEY, np.int64(draws[0]))  # type: ignore[arg-type]


@inner
def effective_share(x: Floats, fields: FieldOffsets, fraction: float) -> tuple[float, float]:
    """Return effective sample size / number of particles, and evidence, after `fraction` of the last reward's gain."""
    top = -math.inf
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            gain = x[row + fields.log_lik, lane] - x[row + fields.log_lik_before, lane]
            top = max(top, x[row + fields.log_weight, lane] + fraction * gain)
    total, squares = 0.0, 0.0
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            gain = x[row + fields.log_lik, lane] - x[row + fields.log_lik_before, lane]
            value = math.exp(x[row + fields.log_weight, lane] + fraction * gain - top)
            total += value
            squares += value * value
    return total * total * fields.end / (squares * x.shape[0] * LANES), top + math.log(total)


@inner
def reweight(x: Floats, fields: FieldOffsets, fraction: float) -> None:
    """Add `fraction` of the last reward's log-likelihood gain to the log weights."""
    for row in range(0, x.shape[0], fields.end):
        for lane in range(LANES):
            gain = x[row + fields.log_lik, lane] - x[row + fields.log_lik_before, lane]
            x[row + fields.log_weight, lane] += fraction * gain


@inner
def systematic_resample(x: Floats, fields: FieldOffsets, evidence: float, u: float) -> None:
    """Resample in place (systematic): each particle gets its share of the evidence in copies, rounded up or down."""
    rows, weight = fields.end, fields.log_weight
    count = x.shape[0] // rows * LANES
    cumulative, assigned = u, 0.0
    for row in range(0, x.shape[0], rows):
        for lane in range(LANES):
            cumulative += count * math.exp(x[row + weight, lane] - evidence)
            copies = min(math.floor(cumulative), count) - assigned
            assigned += copies
            x[row + weight, lane] = copies  # the weight row holds the number of copies until the end
    free, free_lane = 0, 0  # the next particle without a copy; it is overwritten by a duplicate
    for row in range(0, x.shape[0], rows):
        for lane in range(LANES):
            while x[row + weight, lane] > 1.0:
                while x[free + weight, free_lane] > 0.0:
                    free_lane += 1
                    if free_lane == LANES:
                        free, free_lane = free + rows, 0
                for i in range(weight):
                    x[free + i, free_lane] = x[row + i, lane]
                x[free + weight, free_lane] = 1.0
                x[row + weight, lane] -= 1.0
    for row in range(0, x.shape[0], rows):
        for lane in range(LANES):
            x[row + weight, lane] = evidence - math.log(count)


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
    size, keep = coordinate_count(kind), math.sqrt(1.0 - step_size * step_size)
    has_sign = may_flip and kind.p > 0 and kind.form != INDEPENDENT_AR1
    is_flip = has_sign and bits_to_uniform(next_bits(draws)) < FLIP_PROBABILITY
    for lane in range(LANES):
        bits, left = np.uint64(0), 0
        for arm in range(kind.arms):
            candidate[fields.sign + arm, lane] = x[fields.sign + arm, lane]
        if is_flip:
            candidate[fields.sign + bits_to_index(next_bits(draws), kind.arms), lane] *= -1.0
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
    born: int,
    first: int,
    end: int,
    seen: float,
    prior_square: float,
    largest: float,
    draws: DrawCounter,
) -> float:
    """Make one Metropolis step of every particle in a block; return the accepted share, or −1 if signs were flipped.

    The target is the prior times the likelihood, with the last reward's likelihood to the power `fraction`. `candidate`
    is a scratch block.
    """
    size = coordinate_count(kind)
    is_flip = propose(
        x=x,
        candidate=candidate,
        fields=fields,
        kind=kind,
        proposal=proposal,
        step_size=step_size,
        may_flip=first == born,
        work=work,
        draws=draws,
    )
    if first > born:
        for i in range(fields.window_start, fields.log_lik_before):
            for lane in range(LANES):
                candidate[i, lane] = x[i, lane]
    to_parameters(candidate, fields, kind)
    replay_filter(
        x=candidate,
        fields=fields,
        kind=kind,
        history=history,
        born=born,
        first=first,
        end=end,
        seen=seen,
        prior_square=prior_square,
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
