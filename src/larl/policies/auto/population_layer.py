"""The population of a cohort: what each unit reports about its coordinates, and what follows for the others.

The coordinates θ of a unit (parameters.py) are drawn from N(m, S) around a common mean m; S is diagonal. The rewards of
unit i have about the log-likelihood −½ θᵀΛ_iθ + h_iᵀθ (unit_information.py), expanded at the unit's most likely θ given
m and S. With θ_i integrated out, they have the information (Λ_i⁻¹ + S)⁻¹ about m: the sums over the other units give m
and its covariance V. The posterior of every θ_i around m gives S (an EM step). A new report of a unit replaces its
last one in the sums.
"""

import math

import numpy as np

from larl._core.compile import inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper
from larl.policies.auto.layout import CONTINUOUS
from larl.policies.auto.pooled_state import SAME_SIGN, SPREAD_SHARE, PooledAutoState, UnitSums
from larl.policies.auto.populations import expected_levels, model_of
from larl.policies.auto.soa import Floats
from larl.policies.auto.unit_information import unit_information

SPREAD_UNITS = 2.0  # number of units that this expectation is worth
MAX_DISTANCE = 4.0  # of m from its prior mean, in prior standard deviations
MAX_DEVIATION = 3.0  # of a unit's θ from m, in standard deviations between units: an odd unit does not set S


@inner
def invert(matrix: Floats, d: int) -> float:
    """Replace a positive definite matrix by its inverse; return the logarithm of its determinant."""
    factor, column = matrix.copy(), np.zeros(d)
    log_det = cholesky(factor, d)
    for j in range(d):
        for i in range(d):
            column[i] = 1.0 if i == j else 0.0
        solve_lower(factor, column, d)
        solve_upper(factor, column, d)
        for i in range(d):
            matrix[i, j] = column[i]
    return log_det


@inner
def common_mean(state: PooledAutoState, sign: float, mean: Floats, covariance: Floats) -> float:
    """Set the posterior of m given the sums plus `sign` times the unit's report; return the number of units."""
    layer, report, priors = state.layer, state.report, state.auto.smc.priors
    sums, d, last = layer.sums, mean.size, layer.mean.shape[1] - 1
    n, right = sums.units[0] + sign * report.units[0], np.zeros(d)
    is_known = n > 0.5  # without units, differences of sums are only rounding errors
    for i in range(d):
        own = priors.precision[CONTINUOUS, last, i, i] / (1.0 - SPREAD_SHARE)
        for j in range(d):
            units = sums.information[i, j] + sign * report.information[i, j] if is_known else 0.0
            covariance[i, j] = units + (own if i == j else 0.0)
        units = sums.shift[i] + sign * report.shift[i] if is_known else 0.0
        right[i] = own * priors.mean[CONTINUOUS, last, i] + units
    invert(covariance, d)
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += covariance[i, j] * right[j]
        centre, furthest = priors.mean[CONTINUOUS, last, i], prior_distance(state, i)
        mean[i] = min(max(total, centre - furthest), centre + furthest)
    return n


@inline
def prior_distance(state: PooledAutoState, i: int) -> float:
    """Return MAX_DISTANCE prior standard deviations of a coordinate."""
    return MAX_DISTANCE / math.sqrt(state.auto.smc.priors.precision[CONTINUOUS, state.layer.mean.shape[1] - 1, i, i])


@inner
def estimate_population(state: PooledAutoState, covariance: Floats) -> float:
    """Set m, V and S from the other units, and `covariance` to V + S; return the number of other units."""
    layer, report, d = state.layer, state.report, state.layer.centre.size
    n = common_mean(state, -1.0, layer.centre, layer.centre_covariance)
    for i in range(d):
        largest = prior_distance(state, i) ** 2
        expected = SPREAD_SHARE * largest / MAX_DISTANCE**2
        square = max(layer.sums.square[i] - report.square[i], 0.0) if n > 0.5 else 0.0
        layer.spread[i] = min((SPREAD_UNITS * expected + square) / (SPREAD_UNITS + max(n, 0.0)), largest)
        for j in range(d):
            covariance[i, j] = layer.centre_covariance[i, j] + (layer.spread[i] if i == j else 0.0)
    return n


@inner
def same_sign_odds(state: PooledAutoState, arm: int) -> float:
    """Return the log odds, given the other units, that β of an arm has the sign of that of the first arm."""
    sums, report, top, same, total = state.layer.sums.same_sign[arm], state.report.same_sign[arm], -math.inf, 0.0, 0.0
    for k in range(SAME_SIGN.size):
        top = max(top, sums[k] - report[k])
    for k in range(SAME_SIGN.size):
        weight = math.exp(sums[k] - report[k] - top)
        same, total = same + weight * SAME_SIGN[k], total + weight
    return math.log(same / (total - same))


@inner
def expand_likelihood(state: PooledAutoState) -> None:
    """Set Λ and h of the unit from its rewards so far, expanded at its mode."""
    smc, layer, mode = state.auto.smc, state.layer, state.mode
    last, d = layer.mean.shape[1] - 1, mode.size
    signs, gradient, gain, level = np.ones(smc.arms), np.zeros(d), np.zeros(smc.arms), expected_levels(smc, last)
    for arm in range(1, smc.arms):
        signs[arm] = 1.0 if same_sign_odds(state, arm) + state.sign_gain[arm] >= 0.0 else -1.0
    for i in range(d):
        centre, furthest = layer.centre[i], MAX_DEVIATION * math.sqrt(layer.spread[i])
        mode[i] = min(max(mode[i], centre - furthest), centre + furthest)
    born, end = smc.populations.born[last], smc.time[0]
    kind, information = model_of(smc, last), state.information
    is_informed = unit_information(kind, smc.history, born, end, mode, signs, level, gradient, information, gain)
    for arm in range(1, smc.arms):
        state.sign_gain[arm] = -signs[arm] * gain[arm] if is_informed else 0.0
    for i in range(d):
        state.estimate[i] = gradient[i] if is_informed else 0.0
        for j in range(d):
            information[i, j] = information[i, j] if is_informed else 0.0
            state.estimate[i] += information[i, j] * mode[j]


@inner
def add_report(sums: UnitSums, report: UnitSums, factor: float) -> None:
    """Add `factor` times a unit's report to the sums."""
    d = report.shift.size
    sums.units[0] += factor * report.units[0]
    for i in range(d):
        sums.shift[i] += factor * report.shift[i]
        sums.square[i] += factor * report.square[i]
        for j in range(d):
            sums.information[i, j] += factor * report.information[i, j]
    for arm in range(report.same_sign.shape[0]):
        for k in range(SAME_SIGN.size):
            sums.same_sign[arm, k] += factor * report.same_sign[arm, k]


@inner
def report_unit(state: PooledAutoState) -> None:
    """Replace what the unit has reported to the others."""
    smc, layer, report = state.auto.smc, state.layer, state.report
    pops, last = smc.populations, layer.mean.shape[1] - 1
    is_open = pops.alive[last] and smc.rewards[0] == CONTINUOUS
    if is_open and pops.first[last] > pops.born[last]:
        return  # it cannot replay its first rewards: the last report stays
    add_report(layer.sums, report, -1.0)
    clear_report(report)
    if is_open:
        expand_likelihood(state)
        set_report(state)
        add_report(layer.sums, report, 1.0)


@inner
def clear_report(report: UnitSums) -> None:
    """Set all numbers of a report to 0."""
    report.units[0] = 0.0
    for i in range(report.shift.size):
        report.shift[i] = report.square[i] = 0.0
        for j in range(report.shift.size):
            report.information[i, j] = 0.0
    for arm in range(report.same_sign.shape[0]):
        for k in range(SAME_SIGN.size):
            report.same_sign[arm, k] = 0.0


@inner
def set_report(state: PooledAutoState) -> None:
    """Compute the unit's report from Λ, h and what its rewards tell about the signs of β; the sums are without it."""
    layer, report, d = state.layer, state.report, state.layer.centre.size
    known, posterior_cov = state.information, state.information.copy()  # of θ given m: D
    for i in range(d):
        posterior_cov[i, i] += 1.0 / layer.spread[i]
    invert(posterior_cov, d)
    product, mean, covariance = np.zeros((d, d)), np.zeros(d), np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            for k in range(d):
                product[i, j] += posterior_cov[i, k] * known[k, j]  # DΛ
    report.units[0] = 1.0
    for i in range(d):
        report.shift[i] = state.estimate[i]
        for j in range(d):
            report.shift[i] -= product[j, i] * state.estimate[j]
            report.information[i, j] = known[i, j]
            for k in range(d):
                report.information[i, j] -= known[i, k] * product[k, j]
    common_mean(state, 1.0, mean, covariance)  # given all units
    for i in range(d):
        deviation, variance, furthest = 0.0, posterior_cov[i, i], MAX_DEVIATION * math.sqrt(layer.spread[i])
        for j in range(d):
            deviation += posterior_cov[i, j] * state.estimate[j] - product[i, j] * mean[j]
            for k in range(d):
                variance += product[i, j] * covariance[j, k] * product[i, k]
        deviation = min(max(deviation, -furthest), furthest)
        state.mode[i] = mean[i] + deviation
        report.square[i] = deviation * deviation + variance
    for arm in range(1, state.sign_gain.size):
        ratio = math.exp(-min(abs(state.sign_gain[arm]), 500.0))
        for k in range(SAME_SIGN.size):
            same, other = SAME_SIGN[k], 1.0 - SAME_SIGN[k]
            is_same = state.sign_gain[arm] >= 0.0
            report.same_sign[arm, k] = math.log(same + ratio * other if is_same else ratio * same + other)
