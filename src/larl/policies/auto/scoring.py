"""The predicted mean of each arm and its upper confidence bound, over all populations."""

import math

import numpy as np

from larl._core.compile import inline, inner
from larl.policies.auto.binary import PROBIT_SCALE, probit
from larl.policies.auto.layout import BINARY, FieldOffsets, cov_index, field_offsets
from larl.policies.auto.populations import best_population, blocks_of, model_of, total_evidence
from larl.policies.auto.prediction import newest_state, predicted_mean, predicted_variance
from larl.policies.auto.replay import occurs_elsewhere
from larl.policies.auto.soa import LANES, Floats, Row, broadcast, exp, load, maximum, store, sum_lanes
from larl.policies.auto.state import SMCState

LEVEL_FACTOR = 2.0  # of log(2 + t), which multiplies the variance of an arm's level in its score
PROBATION = 2.3  # the same as NO_INFLUENCE for a restarted population
NO_INFLUENCE = 12.0  # a population whose log evidence is this far below the best does not affect decisions
# Binary rewards: factor of the bonus, which is added to log odds; its upper limit; lower limit of the slope p(1 − p)
BINARY_FACTOR, MAX_BINARY_BONUS, MIN_SLOPE = 2.0, 30.0, 0.01


@inner
def score_arms(smc: SMCState, alpha: float, expected: Floats, score: Floats) -> None:
    """Set each arm's mean over all particles and its score.

    With continuous rewards the score is the mean + α√(variance + 2 log(2 + t) · level variance).

    The first variance is that of the predicted mean between particles, the second the average posterior variance of the
    arm's level within a particle. The factor of the second grows with time, because other arms give no information
    on an arm's level. With binary rewards the bonus is added to the log odds of the mean: near 0 and 1 the probability
    hardly depends on the level, so a bonus in units of the probability would neglect arms that are rarely rewarded and
    prefer the worse of two arms that are often rewarded.
    """
    pops, arms, total = smc.populations, score.size, broadcast(0.0)
    evidence, best = total_evidence(smc), best_population(smc)
    sums = np.zeros((3 * arms, LANES))  # Σ weight · (mean, mean², level variance) of each arm
    for population in range(pops.order.size):
        limit = PROBATION if pops.born[population] > smc.relearnt[0] else NO_INFLUENCE
        if pops.alive[population] and pops.evidence[best] - pops.evidence[population] <= limit:
            total += add_predictions(smc, population, evidence, sums)
    weight, factor = sum_lanes(total), LEVEL_FACTOR * math.log(2.0 + smc.time[0])
    for arm in range(arms):
        mean, square = sum_lanes(load(sums, 3 * arm)) / weight, sum_lanes(load(sums, 3 * arm + 1)) / weight
        level = factor * sum_lanes(load(sums, 3 * arm + 2)) / weight
        variance, expected[arm] = max(square - mean * mean, 0.0), mean
        if smc.rewards[0] == BINARY:
            score[arm] = mean + probability_bonus(mean, variance, level, alpha)
        else:
            score[arm] = mean + alpha * math.sqrt(variance + level)
    enforce_min_plays(smc, score)


@inline
def probability_bonus(mean: float, variance: float, level: float, alpha: float) -> float:
    """Return by how much BINARY_FACTOR · α standard deviations of the log odds raise the probability `mean`.

    `variance` is that of the probability, `level` an additional variance of the log odds.
    """
    slope = max(mean * (1.0 - mean), MIN_SLOPE)
    bonus = alpha * (BINARY_FACTOR * math.sqrt(variance / (slope * slope) + level))
    growth = math.expm1(min(bonus, MAX_BINARY_BONUS))  # of the odds
    return max(mean * (1.0 - mean), 0.0) * growth / (1.0 + mean * growth)


@inner
def add_predictions(smc: SMCState, population: int, evidence: float, sums: Floats) -> Row:
    """Add the weighted predictions of a population to `sums`; return the sum of its weights."""
    kind, pops, total = model_of(smc, population), smc.populations, broadcast(0.0)
    fields, is_binary = field_offsets(kind), kind.rewards == BINARY
    x, z = blocks_of(smc, population, fields), newest_state(kind, smc.time[0] - pops.born[population])
    for row in range(0, x.shape[0], fields.end):
        weight, shock = exp(load(x, row + fields.log_weight) - broadcast(evidence)), broadcast(1.0)
        if not is_binary:
            shock = load(x, row + fields.squared_error) * broadcast(1.0 / max(pops.seen[population], 1.0))
        total += weight
        for arm in range(kind.arms):
            mean = predicted_mean(x, fields, kind, row, z, arm, smc.context, 0)
            level = maximum(load(x, row + fields.cov + cov_index(arm, arm)), broadcast(0.0)) * shock
            if is_binary:
                store(x, row + fields.tmp1, mean)
                store(x, row + fields.tmp2, level)
                store(x, row + fields.tmp3, predicted_variance(x, fields, kind, row, z, arm, smc.context, 0))
                to_probabilities(x, fields, row)
                mean, level = load(x, row + fields.tmp1), load(x, row + fields.tmp2)
            store(sums, 3 * arm, load(sums, 3 * arm) + weight * mean)
            store(sums, 3 * arm + 1, load(sums, 3 * arm + 1) + weight * mean * mean)
            store(sums, 3 * arm + 2, load(sums, 3 * arm + 2) + weight * level)
    return total


@inline
def to_probabilities(x: Floats, fields: FieldOffsets, row: int) -> None:
    """Turn the mean of η (row tmp1) into the probability of reward 1, and its variance (tmp2) into that of log odds.

    The variance is that due to the level. Row tmp3 has the whole variance of η.
    """
    for lane in range(LANES):
        scale = math.sqrt(PROBIT_SCALE * PROBIT_SCALE + max(x[row + fields.tmp3, lane], 0.0))
        log_probability, _ = probit(x[row + fields.tmp1, lane] / scale)
        x[row + fields.tmp1, lane] = math.exp(log_probability)
        x[row + fields.tmp2, lane] *= (PROBIT_SCALE / scale) ** 2  # log odds are about 1.7 Φ⁻¹(probability)


@inline
def enforce_min_plays(smc: SMCState, score: Floats) -> None:
    """If the last reward equals an earlier one, raise arms with fewer than ½ log₂(t + 2) rewards to the best score.

    Discrete rewards such as ratings violate the models' normal noise, and make them too certain about arms with few
    rewards. Rewards from a continuous distribution never repeat, so the rule does not affect them.
    """
    history, t = smc.history, min(smc.time[0], smc.history.arm.size)
    last = (smc.time[0] - 1) % history.arm.size
    best, least = -math.inf, 0.5 * math.log2(t + 2.0)
    if history.arm[last] < 0 or not occurs_elsewhere(history, t, history.reward[last], last):
        return
    for arm in range(score.size):
        best = max(best, score[arm])
    for arm in range(score.size):
        plays = 0
        for i in range(t):
            plays += history.arm[i] == arm
        if plays < least:
            score[arm] = best
