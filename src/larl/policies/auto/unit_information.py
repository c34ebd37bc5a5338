"""What a unit's rewards tell about its coordinates: gradient and information of the log-likelihood at a point."""

import math

import numpy as np

from larl._core.compile import inner
from larl.policies.auto.belief import init_belief
from larl.policies.auto.layout import ModelKind, coordinate_count, field_offsets
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.particle_kalman import measurement_update, time_update
from larl.policies.auto.prediction import newest_state, predicted_mean
from larl.policies.auto.replay import RewardHistory
from larl.policies.auto.soa import LANES, Floats, aligned_rows, store

STEP = 0.02  # of the central differences
MAX_INFORMATION = 1e9  # more comes from rewards that a filter predicts exactly


@inner
def unit_information(
    kind: ModelKind,
    history: RewardHistory,
    born: int,
    end: int,
    centre: Floats,
    signs: Floats,
    level: Floats,
    gradient: Floats,
    information: Floats,
    flip_gain: Floats,
) -> bool:
    """Set the gradient and the expected information (−Hessian) of the log-likelihood of steps born … end − 1.

    The model is for continuous rewards; σ² is integrated out. With prediction errors e_t of variance σ²S_t, n of them,
    and Q = Σ e²/S, the log-likelihood is −½ Σ log S − ½ n log Q, and its information
    Σ ∂e ∂eᵀ n/(QS) + ½ Σ ∂log S ∂log Sᵀ − (Σ ∂log S)(Σ ∂log S)ᵀ/2n. Derivatives are central differences: one filter
    for each point. `flip_gain` is set to what the log-likelihood gains if the sign of β of an arm is changed. Return
    whether there is any information.
    """
    fields, size = field_offsets(kind), coordinate_count(kind)
    points = 2 * size + 1  # the centre, then for each coordinate a point above and one below
    blocks = -(-(points + kind.arms) // LANES)  # and for each arm the centre with another sign
    x = aligned_rows(blocks * fields.end)
    mean, variances = aligned_rows(blocks), aligned_rows(blocks)
    slope, log_slope, total, flip_total = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(kind.arms)
    for block in range(blocks):
        row = block * fields.end
        for lane in range(LANES):
            point = block * LANES + lane
            for j in range(size):
                x[row + fields.theta + j, lane] = centre[j]
            for arm in range(kind.arms):
                x[row + fields.sign + arm, lane] = signs[arm]
            if 0 < point < points:
                x[row + fields.theta + (point - 1) // 2, lane] += STEP if point % 2 == 1 else -STEP
            elif points <= point < points + kind.arms:
                x[row + fields.sign + point - points, lane] *= -1.0
        to_parameters(x[row : row + fields.end], fields, kind)
    for i in range(size):
        for j in range(size):
            information[i, j] = 0.0
    count, by_log = 0, np.zeros((size, size))
    for t in range(end - born):
        i = (born + t) % history.arm.size
        arm = history.arm[i]
        for block in range(blocks):
            own = x[block * fields.end : (block + 1) * fields.end]
            if t == 0:
                init_belief(own, fields, kind, arm, history.reward[i], level, history.context, i)
            elif arm >= 0:
                z = newest_state(kind, t)
                store(mean, block, predicted_mean(own, fields, kind, 0, z, arm, history.context, i))
                variance = measurement_update(
                    own, fields, kind, t, arm, history.reward[i], history.inflation[i], history.context, i
                )
                store(variances, block, variance)
            time_update(own, fields, kind, t + 1)
        if t == 0 or arm < 0:
            continue
        count += 1
        precision = 1.0 / variances[0, 0]
        for j in range(size):
            high, low = 1 + 2 * j, 2 + 2 * j
            above, below = variances[high // LANES, high % LANES], variances[low // LANES, low % LANES]
            slope[j] = (mean[high // LANES, high % LANES] - mean[low // LANES, low % LANES]) / (2.0 * STEP)
            log_slope[j] = math.log(above / below) / (2.0 * STEP)
            total[j] += log_slope[j]
        for other in range(kind.arms):
            point = points + other
            flip_total[other] += math.log(variances[point // LANES, point % LANES] * precision)
        for j in range(size):
            for k in range(j + 1):
                information[j, k] += precision * slope[j] * slope[k]
                by_log[j, k] += 0.5 * log_slope[j] * log_slope[k]
    square = x[fields.squared_error, 0]
    if count == 0 or not square > 0.0:
        return False
    is_finite = True
    for j in range(size):
        high, low = 1 + 2 * j, 2 + 2 * j
        above = x[high // LANES * fields.end + fields.squared_error, high % LANES]
        below = x[low // LANES * fields.end + fields.squared_error, low % LANES]
        if not (above > 0.0 and below > 0.0):
            return False
        gradient[j] = -0.5 * total[j] - 0.5 * count * math.log(above / below) / (2.0 * STEP)
        is_finite &= math.isfinite(gradient[j])
        for k in range(j + 1):
            value = information[j, k] * count / square + by_log[j, k] - 0.5 * total[j] * total[k] / count
            information[j, k] = information[k, j] = value
            is_finite &= abs(value) < MAX_INFORMATION
    for arm in range(kind.arms):
        point = points + arm
        flipped = x[point // LANES * fields.end + fields.squared_error, point % LANES]
        flip_gain[arm] = -0.5 * flip_total[arm] - 0.5 * count * math.log(max(flipped, 1e-300) / square)
        is_finite &= math.isfinite(flip_gain[arm])
    return is_finite
