"""Binary rewards: the probit model, and the moments of the belief after one reward (assumed-density filtering)."""

import math
from statistics import NormalDist

import numpy as np

from larl._core.compile import inline
from larl.policies.auto.layout import FieldOffsets
from larl.policies.auto.soa import LANES, Floats

PROBIT_SCALE = 1.7  # Φ(η/1.7) is within 0.01 of the logistic function
OFFSET_SD = 1.7  # prior sd of c, the offset that all arms share
MAX_SHRINKAGE = 1.0 - 1e-6  # of the variance of η by one binary reward

# log Φ(u) and φ(u)/Φ(u) at u = −TABLE_END … TABLE_END; in between they are interpolated linearly.
TABLE_END, TABLE_STEPS = 8.0, 64
_CDF = [math.erfc((TABLE_END - i / TABLE_STEPS) / 2**0.5) / 2 for i in range(int(2 * TABLE_END) * TABLE_STEPS + 1)]
_PDF = [NormalDist().pdf(i / TABLE_STEPS - TABLE_END) for i in range(int(2 * TABLE_END) * TABLE_STEPS + 1)]
LOG_CDF = np.log(np.array(_CDF))
MILLS = np.array(_PDF) / np.array(_CDF)


@inline
def probit(u: float) -> tuple[float, float]:
    """Return log Φ(u) and φ(u)/Φ(u)."""
    if u <= -TABLE_END:  # the first terms of the asymptotic series
        return -0.5 * u * u - math.log(-u) - 0.9189385332046727, -u - 1.0 / u
    if u >= TABLE_END:
        return 0.0, 0.0
    position = (u + TABLE_END) * TABLE_STEPS
    i = np.int64(position)
    weight = position - i
    return LOG_CDF[i] + weight * (LOG_CDF[i + 1] - LOG_CDF[i]), MILLS[i] + weight * (MILLS[i + 1] - MILLS[i])


@inline
def binary_gains(x: Floats, fields: FieldOffsets, reward: float) -> None:
    """Turn the mean of η (row tmp2) and its variance (tmp1) into the factors of the moments' updates (tmp3, tmp1).

    With h the covariance of the state and η, the mean moves by h · tmp3 and the covariance by −hhᵀ · tmp1.
    """
    for lane in range(LANES):
        variance, y = max(x[fields.tmp1, lane], 0.0), 2.0 * reward - 1.0
        scale = math.sqrt(PROBIT_SCALE * PROBIT_SCALE + variance)
        u = y * x[fields.tmp2, lane] / scale
        log_probability, ratio = probit(u)
        shrinkage = ratio * (u + ratio) / (scale * scale)
        x[fields.log_det, lane] -= 2.0 * log_probability
        x[fields.tmp3, lane] = y * ratio / scale
        x[fields.tmp1, lane] = min(shrinkage, MAX_SHRINKAGE / variance) if variance > 0.0 else 0.0
