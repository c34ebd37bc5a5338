"""Normal distributions over particle coordinates: the proposal of the moves, fitted to a population, and the prior."""

import math
from typing import NamedTuple

from larl._core.compile import inline, inner
from larl.policies._linalg.cholesky import cholesky, solve_lower
from larl.policies.auto.soa import LANES, Floats

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
def fit_proposal(
    x: Floats, rows: int, theta: int, log_weight: int, size: int, evidence: float, proposal: GaussianProposal
) -> None:
    """Fit a normal distribution to the weighted particles of a population, whose blocks have `rows` rows each."""
    mean, factor, blocks = proposal.mean, proposal.factor, x.shape[0] // rows
    for i in range(size):
        mean[i] = 0.0
        for j in range(i + 1):
            factor[i, j] = 0.0
    for block in range(blocks):
        top = block * rows
        for lane in range(LANES):
            share = math.exp(x[top + log_weight, lane] - evidence)
            for i in range(size):
                mean[i] += share * x[top + theta + i, lane]
    for block in range(blocks):
        top = block * rows
        for lane in range(LANES):
            share = math.exp(x[top + log_weight, lane] - evidence)
            for i in range(size):
                deviation = share * (x[top + theta + i, lane] - mean[i])
                for j in range(i + 1):
                    factor[i, j] += deviation * (x[top + theta + j, lane] - mean[j])
    for i in range(size):
        for j in range(i):
            factor[i, j] *= COV_SHRINKAGE
        factor[i, i] += MIN_VARIANCE
    cholesky(factor, size)


@inner
def proposal_to_prior(proposal: GaussianProposal, size: int, mean: Floats, precision: Floats, work: Floats) -> None:
    """Write the mean and the precision of a proposal into a prior."""
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
def log_proposal(x: Floats, theta: int, size: int, proposal: GaussianProposal, work: Floats, lane: int) -> float:
    """Return the log density of one particle's coordinates under the proposal, up to a constant."""
    for i in range(size):
        work[i] = x[theta + i, lane] - proposal.mean[i]
    return -0.5 * solve_lower(proposal.factor, work, size)


@inline
def log_prior(x: Floats, theta: int, size: int, prior: GaussianPrior, lane: int) -> float:
    """Return the log density of one particle's coordinates under the prior, up to a constant."""
    total = 0.0
    for i in range(size):
        deviation = x[theta + i, lane] - prior.mean[i]
        along = 0.5 * prior.precision[i, i] * deviation
        for j in range(i):
            along += prior.precision[i, j] * (x[theta + j, lane] - prior.mean[j])
        total += along * deviation
    return -total
