"""The population of a cohort: what each unit reports about its coordinates, and what follows for the others.

The coordinates θ of a unit (parameters.py) are drawn from N(m, S) around a common mean m; S is diagonal. The rewards of
unit i have about the log-likelihood −½ θᵀΛ_iθ + h_iᵀθ (unit_information.py), expanded at the unit's most likely θ given
m and S. With θ_i integrated out, they have the information (Λ_i⁻¹ + S)⁻¹ about m: the sums over the other units give m
and its covariance V. The posterior of every θ_i around m gives S (an EM step). A new report of a unit replaces its
last one in the sums.
"""

import math

import numpy as np

from larl._core.compile import inner
from larl.policies._linalg.cholesky import cholesky, solve_lower, solve_upper
from larl.policies.auto.layout import CONTINUOUS
from larl.policies.auto.pooled_state import SAME_SIGN, SPREAD_SHARE, PooledAutoState, UnitSums
from larl.policies.auto.populations import expected_levels, model_of
from larl.policies.auto.soa import Floats
from larl.policies.auto.unit_information import unit_information

SPREAD_UNITS = 2.0  # number of units that this expectation is worth
MAX_DISTANCE = 4.0  # of m from its prior mean, in prior standard deviations
MAX_DEVIATION = 3.0  # of the point of expansion from m, in standard deviations between units


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
def estimate_population(state: PooledAutoState, covariance: Floats) -> float:
    """Set m, V and S from the other units, and `covariance` to V + S; return the number of other units."""
    layer, report, priors = state.layer, state.report, state.auto.smc.priors
    sums, d, last = layer.sums, layer.centre.size, layer.mean.shape[1] - 1
    n = sums.units[0] - report.units[0]
    first_mean, first_precision = priors.mean[CONTINUOUS, last], priors.precision[CONTINUOUS, last]
    right = np.zeros(d)
    for i in range(d):
        own = first_precision[i, i] / (1.0 - SPREAD_SHARE)
        for j in range(d):
            others = sums.information[i, j] - report.information[i, j] if n > 0.5 else 0.0
            covariance[i, j] = others + (own if i == j else 0.0)
        right[i] = own * first_mean[i] + (sums.shift[i] - report.shift[i] if n > 0.5 else 0.0)
        expected = SPREAD_SHARE / first_precision[i, i]
        square = max(sums.square[i] - report.square[i], 0.0) if n > 0.5 else 0.0
        layer.spread[i] = (SPREAD_UNITS * expected + square) / (SPREAD_UNITS + max(n, 0.0))
    invert(covariance, d)
    for i in range(d):
        total, furthest = 0.0, MAX_DISTANCE / math.sqrt(first_precision[i, i])
        for j in range(d):
            layer.centre_covariance[i, j] = covariance[i, j]
            total += covariance[i, j] * right[j]
        layer.centre[i] = min(max(total, first_mean[i] - furthest), first_mean[i] + furthest)
    for i in range(d):
        covariance[i, i] += layer.spread[i]
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
    if is_open:
        expand_likelihood(state)
        set_report(state)
    else:
        clear_report(report)
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
    """Compute the unit's report from Λ, h and what its rewards tell about the signs of β."""
    layer, report, d = state.layer, state.report, state.layer.centre.size
    known, posterior_cov = state.information, state.information.copy()
    for i in range(d):
        posterior_cov[i, i] += 1.0 / layer.spread[i]
    invert(posterior_cov, d)
    product, uncertain, right = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    for i in range(d):
        right[i] = state.estimate[i]
        for j in range(d):
            right[i] -= known[i, j] * layer.centre[j]
            for k in range(d):
                product[i, j] += posterior_cov[i, k] * known[k, j]  # DΛ
    report.units[0] = 1.0
    for i in range(d):
        report.shift[i], mean = state.estimate[i], 0.0
        for j in range(d):
            mean += posterior_cov[i, j] * right[j]
            report.shift[i] -= product[j, i] * state.estimate[j]
            report.information[i, j] = known[i, j]
            for k in range(d):
                report.information[i, j] -= known[i, k] * product[k, j]
                uncertain[i, j] += product[i, k] * layer.centre_covariance[k, j]
        state.mode[i] = layer.centre[i] + mean
        report.square[i] = mean * mean + posterior_cov[i, i]
    for i in range(d):
        for j in range(d):
            report.square[i] += uncertain[i, j] * product[i, j]
    for arm in range(1, state.sign_gain.size):
        ratio = math.exp(-min(abs(state.sign_gain[arm]), 500.0))
        for k in range(SAME_SIGN.size):
            same, other = SAME_SIGN[k], 1.0 - SAME_SIGN[k]
            is_same = state.sign_gain[arm] >= 0.0
            report.same_sign[arm, k] = math.log(same + ratio * other if is_same else ratio * same + other)
