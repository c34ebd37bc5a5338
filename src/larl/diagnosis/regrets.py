"""What the choice of arms was worth: mean regrets over the rows of a log, relative to knowing the state."""

from typing import NamedTuple

import numpy as np

from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log


class MeanRegrets(NamedTuple):
    """Mean regret per row of the log, relative to knowing the state."""

    fixed_arm: float  # of the arm that is best on average
    switch_share: float  # share of rows at which another arm is better than that arm
    log: float  # of the arms that were played


def mean_regrets(log: Log, mu: Floats, beta: Floats, z: Floats) -> MeanRegrets:
    """Return means over rows t of max_a(μ_a + β_a z_t) minus μ_a + β_a z_t of the arm in question."""
    best, arm = np.full(z.size, -np.inf), int(np.argmax(mu + beta * z.mean()))
    for other in range(mu.size):
        np.maximum(best, mu[other] + beta[other] * z, out=best)
    fixed = mu[arm] + beta[arm] * z
    logged = best - mu[log.arm] - beta[log.arm] * z
    return MeanRegrets(float(np.mean(best - fixed)), float(np.mean(best > fixed)), float(logged.mean()))


def regrets_of_means(log: Log, means: Floats) -> MeanRegrets:
    """Return the same for any mean rewards, (arms, rows)."""
    best, fixed = means.max(axis=0), means[int(means.mean(axis=1).argmax())]
    logged = best - means[log.arm, np.arange(log.rows)]
    return MeanRegrets(float(np.mean(best - fixed)), float(np.mean(best > fixed)), float(logged.mean()))
