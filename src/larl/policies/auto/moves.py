"""Move particles by Metropolis steps that replay the rewards: iterated batch importance sampling (Chopin 2002).

The moves make the copies of resampled particles (resampling.py) different again.
"""

import math
from statistics import NormalDist

import numpy as np

from larl._core.compile import inline, inner
from larl._core.random import bits_to_index, bits_to_uniform, random_bits
from larl.policies.auto.layout import INDEPENDENT_AR1, STATIONARY_AR, FieldOffsets, ModelKind, coordinate_count
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.proposal import GaussianPrior, GaussianProposal, log_prior, standardise
from larl.policies.auto.replay import RewardHistory, replay_filter
from larl.policies.auto.soa import LANES, Floats, Row, broadcast, load, store, where_positive
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
def draw_normals(noise: Floats, size: int, lane: int, draws: DrawCounter) -> None:
    """Write standard normal draws into the first rows of one column."""
    bits, left = np.uint64(0), 0
    for i in range(size):
        if left == 0:
            bits, left = next_bits(draws), 5
        noise[i, lane] = QUANTILES[np.int64(bits & np.uint64(4095))]
        bits, left = bits >> np.uint64(12), left - 1


@inner
def flip_signs(
    x: Floats, candidate: Floats, fields: FieldOffsets, kind: ModelKind, size: int, draws: DrawCounter
) -> None:
    """Write candidates that differ in the sign of one β, a random one for each particle."""
    for i in range(size):
        store(candidate, fields.theta + i, load(x, fields.theta + i))
    for lane in range(LANES):
        candidate[fields.sign + bits_to_index(next_bits(draws), kind.arms), lane] *= -1.0
        draws[0] += np.uint64((size + 4) // 5)  # as many draws as the normals of another step


@inline
def log_sign_ratio(x: Floats, candidate: Floats, fields: FieldOffsets, kind: ModelKind, log_odds: Floats) -> Row:
    """Return the log ratio of the prior probabilities of the signs, of candidates over particles."""
    ratio, half = broadcast(0.0), broadcast(0.5)
    first, candidate_first = load(x, fields.sign), load(candidate, fields.sign)
    for arm in range(1, kind.arms):
        after = candidate_first * load(candidate, fields.sign + arm)
        ratio += broadcast(log_odds[arm]) * half * (after - first * load(x, fields.sign + arm))
    return ratio


@inner
def propose(
    x: Floats,
    candidate: Floats,
    fields: FieldOffsets,
    size: int,
    prior: GaussianPrior,
    proposal: GaussianProposal,
    step_size: float,
    rows: Floats,
    draws: DrawCounter,
) -> Row:
    """Write candidate coordinates; return the log ratio of prior over proposal, of candidates over particles.

    The step is a preconditioned Crank–Nicolson step, which leaves the distribution `proposal` invariant. `rows` is
    scratch, with 2 × `size` rows.
    """
    keep, step, gain = broadcast(math.sqrt(1.0 - step_size * step_size)), broadcast(step_size), broadcast(0.0)
    standardise(x, fields.theta, size, proposal, rows)
    for lane in range(LANES):
        draw_normals(rows[size:], size, lane, draws)
    for i in range(size):
        before = load(rows, i)
        after = keep * before + step * load(rows, size + i)
        gain += after * after - before * before
        store(rows, i, after)
    for i in range(size):
        value = broadcast(proposal.mean[i])
        for j in range(i + 1):
            value += broadcast(proposal.factor[i, j]) * load(rows, j)
        store(candidate, fields.theta + i, value)
    ratio = log_prior(candidate, fields.theta, size, prior, rows) - log_prior(x, fields.theta, size, prior, rows)
    return ratio + broadcast(0.5) * gain


@inner
def move(
    x: Floats,
    candidate: Floats,
    fields: FieldOffsets,
    kind: ModelKind,
    prior: GaussianPrior,
    proposal: GaussianProposal,
    rows: Floats,
    step_size: float,
    fraction: float,
    history: RewardHistory,
    born: int,
    first: int,
    end: int,
    seen: float,
    prior_square: float,
    largest: float,
    expected_level: Floats,
    sign_log_odds: Floats,
    draws: DrawCounter,
) -> float:
    """Make one Metropolis step of every particle in a block; return the accepted share, or −1 if signs were flipped.

    The target is the prior times the likelihood, with the last reward's likelihood to the power `fraction`. `candidate`
    is a scratch block; `sign_log_odds` are the prior log odds that β of an arm has the sign of that of the first arm.
    """
    size, ratio, is_flip = coordinate_count(kind), broadcast(0.0), False
    for arm in range(kind.arms):
        store(candidate, fields.sign + arm, load(x, fields.sign + arm))
    if first == born and kind.p > 0 and kind.form != INDEPENDENT_AR1:
        is_flip = bits_to_uniform(next_bits(draws)) < FLIP_PROBABILITY
    if is_flip:
        flip_signs(x, candidate, fields, kind, size, draws)
        if kind.form == STATIONARY_AR:
            ratio = log_sign_ratio(x, candidate, fields, kind, sign_log_odds)
    else:
        ratio = propose(x, candidate, fields, size, prior, proposal, step_size, rows, draws)
    if first > born:
        for i in range(fields.window_start, fields.log_lik_before):
            store(candidate, i, load(x, i))
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
        expected_level=expected_level,
    )
    last, before = load(candidate, fields.log_lik), load(candidate, fields.log_lik_before)
    ratio += broadcast(1.0 - fraction) * (before - load(x, fields.log_lik_before))
    ratio += broadcast(fraction) * (last - load(x, fields.log_lik))
    store(rows, 0, ratio)
    moved = 0
    for lane in range(LANES):
        # a ratio that is nan or ∞ is rejected
        is_accepted = math.log(1.0 - bits_to_uniform(next_bits(draws))) < rows[0, lane] < math.inf
        rows[0, lane] = 1.0 if is_accepted else 0.0
        moved += is_accepted
    if moved > 0:
        accepted = load(rows, 0)
        for i in range(fields.log_weight):
            if first > born or i < fields.window_start or i >= fields.log_lik_before:
                store(x, i, where_positive(accepted, load(candidate, i), load(x, i)))
    return -1.0 if is_flip else moved / LANES
