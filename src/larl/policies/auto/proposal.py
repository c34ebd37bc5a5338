"""Normal distributions over particle coordinates: the proposal of the moves, fitted to a population, and the prior."""

from typing import NamedTuple

import numpy as np

from larl._core.compile import inline, inner
from larl.policies._linalg.cholesky import cholesky
from larl.policies.auto.soa import Floats, Row, aligned_rows, broadcast, exp, load, store, sum_lanes

MIN_VARIANCE = 1e-6  # added to each variance: the particles may all be equal
COV_SHRINKAGE = 0.9  # factor of the covariances: estimates from few particles are noisy


class GaussianProposal(NamedTuple):
    """A normal distribution with the moments of a population: mean and Cholesky factor of the covariance."""

    mean: Floats
    factor: Floats


class GaussianPrior(NamedTuple):
    """A normal prior: mean and inverse covariance."""

    mean: Floats
    precision: Floats


@inner
def empty_proposal(size: int) -> GaussianProposal:
    """Return a proposal before `fit_proposal` sets it."""
    return GaussianProposal(np.empty(size), np.empty((size, size)))


@inner
def fit_proposal(
    x: Floats, rows: int, theta: int, log_weight: int, size: int, evidence: float, proposal: GaussianProposal
) -> None:
    """Fit a normal distribution to the weighted particles of a population, whose blocks have `rows` rows each."""
    mean, factor, blocks = proposal.mean, proposal.factor, x.shape[0] // rows
    scratch = aligned_rows(blocks * (size + 1))  # of each block: the weights, and the coordinates minus their mean
    for block in range(blocks):
        store(scratch, block * (size + 1), exp(load(x, block * rows + log_weight) - broadcast(evidence)))
    for i in range(size):
        total = broadcast(0.0)
        for block in range(blocks):
            total += load(scratch, block * (size + 1)) * load(x, block * rows + theta + i)
        mean[i] = sum_lanes(total)
        for block in range(blocks):
            store(scratch, block * (size + 1) + 1 + i, load(x, block * rows + theta + i) - broadcast(mean[i]))
    for i in range(size):
        for j in range(i + 1):
            total = broadcast(0.0)
            for block in range(blocks):
                top = block * (size + 1)
                total += load(scratch, top) * load(scratch, top + 1 + i) * load(scratch, top + 1 + j)
            factor[i, j] = sum_lanes(total) * (1.0 if i == j else COV_SHRINKAGE)
        factor[i, i] += MIN_VARIANCE
    cholesky(factor, size)


@inner
def proposal_to_prior(proposal: GaussianProposal, size: int, mean: Floats, precision: Floats) -> None:
    """Write the mean and the precision of a proposal into a prior."""
    work = np.empty(size)
    for i in range(size):
        mean[i] = proposal.mean[i]
        for j in range(size):
            precision[i, j] = 0.0
    for column in range(size):  # L⁻¹ column by column; the precision is the sum of its rows' outer products
        for i in range(column, size):
            value = 1.0 if i == column else 0.0
            for j in range(column, i):
                value -= proposal.factor[i, j] * work[j]
            work[i] = value / proposal.factor[i, i]
        for i in range(column, size):
            precision[i, column] = work[i]
    for i in range(size):  # from the top: rows of L⁻¹ above i are not needed again
        for j in range(i + 1):
            total = 0.0
            for k in range(i, size):
                total += precision[k, i] * precision[k, j]
            precision[i, j] = total
    for i in range(size):
        for j in range(i):
            precision[j, i] = precision[i, j]


@inline
def standardise(x: Floats, theta: int, size: int, proposal: GaussianProposal, rows: Floats) -> None:
    """Write L⁻¹(coordinates − mean) into the first rows of `rows`: independent standard normals under the proposal."""
    for i in range(size):
        value = load(x, theta + i) - broadcast(proposal.mean[i])
        for j in range(i):
            value -= broadcast(proposal.factor[i, j]) * load(rows, j)
        store(rows, i, value * broadcast(1.0 / proposal.factor[i, i]))


@inline
def log_prior(x: Floats, theta: int, size: int, prior: GaussianPrior, rows: Floats) -> Row:
    """Return the log density of the particles' coordinates under the prior, up to a constant; `rows` is scratch."""
    total = broadcast(0.0)
    for i in range(size):
        deviation = load(x, theta + i) - broadcast(prior.mean[i])
        along = broadcast(0.5 * prior.precision[i, i]) * deviation
        for j in range(i):
            along += broadcast(prior.precision[i, j]) * load(rows, j)
        total += along * deviation
        store(rows, i, deviation)
    return broadcast(0.0) - total
