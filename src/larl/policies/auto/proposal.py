"""Normal distributions over particles' coordinates: a population's nearest, as what moves keep and as a prior."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower
from larl.policies.auto.layout import Rows
from larl.policies.auto.soa import LANES, Floats

Blocks = NDArray[np.int64]  # for each block its population
LEAST = 1e-6  # variance added to a population's own, which may have collapsed
SHRINK = 0.9  # of a population's covariances: those of few particles are noisy


class Normal(NamedTuple):
    """The normal distribution nearest to a population: its mean, and the Cholesky factor of its covariance."""

    mean: Floats
    factor: Floats


class Prior(NamedTuple):
    """A normal prior: its mean and the inverse of its covariance."""

    mean: Floats
    precision: Floats


@inner
def fit(data: Floats, owner: Blocks, mine: int, rows: Rows, size: int, evidence: float, normal: Normal) -> None:
    """The normal distribution nearest to a population."""
    mean, factor = normal.mean, normal.factor
    for i in range(size):
        mean[i] = 0.0
        for j in range(i + 1):
            factor[i, j] = 0.0
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                share = math.exp(data[block, rows.weight, lane] - evidence)
                for i in range(size):
                    mean[i] += share * data[block, rows.theta + i, lane]
    for block in range(owner.size):
        if owner[block] == mine:
            for lane in range(LANES):
                share = math.exp(data[block, rows.weight, lane] - evidence)
                for i in range(size):
                    away = share * (data[block, rows.theta + i, lane] - mean[i])
                    for j in range(i + 1):
                        factor[i, j] += away * (data[block, rows.theta + j, lane] - mean[j])
    for i in range(size):
        for j in range(i):
            factor[i, j] *= SHRINK
        factor[i, i] += LEAST
    cholesky(factor, size)


@inner
def become_prior(normal: Normal, size: int, mean: Floats, precision: Floats, work: Floats) -> None:
    """The prior that a normal distribution is."""
    for i in range(size):
        mean[i] = normal.mean[i]
        for j in range(size):
            precision[i, j] = 0.0
    for column in range(size):  # L⁻¹ column by column; the precision is the sum of its rows' outer products
        for i in range(column, size):
            value = 1.0 if i == column else 0.0
            for j in range(column, i):
                value -= normal.factor[i, j] * work[j]
            work[i] = value / normal.factor[i, i]
        for i in range(column, size):
            precision[i, column] = work[i]
    for i in range(size):  # from the top, where L⁻¹ is read no more
        for j in range(i + 1):
            total = 0.0
            for k in range(i, size):
                total += precision[k, i] * precision[k, j]
            precision[i, j] = total
    for i in range(size):
        for j in range(i):
            precision[j, i] = precision[i, j]


@inline
def log_normal(x: Floats, theta: int, size: int, normal: Normal, work: Floats, lane: int) -> float:
    """Of one particle's coordinates under a normal distribution, up to a constant."""
    for i in range(size):
        work[i] = x[theta + i, lane] - normal.mean[i]
    return -0.5 * solve_lower(normal.factor, work, size)


@inline
def log_prior(x: Floats, theta: int, size: int, prior: Prior, lane: int) -> float:
    """Of one particle's coordinates under the prior, up to a constant."""
    total = 0.0
    for i in range(size):
        away = x[theta + i, lane] - prior.mean[i]
        along = 0.5 * prior.precision[i, i] * away
        for j in range(i):
            along += prior.precision[i, j] * (x[theta + j, lane] - prior.mean[j])
        total += along * away
    return -total
