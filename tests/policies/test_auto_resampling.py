"""Auto: resampling, and the normal distribution that is fitted to a population."""

import math

import numpy as np

from larl._core.compile import kernel
from larl.policies.auto.layout import AR_STATE, CONTINUOUS, ModelKind, field_offsets
from larl.policies.auto.proposal import GaussianProposal, fit_proposal, proposal_to_prior
from larl.policies.auto.resampling import systematic_resample
from larl.policies.auto.soa import LANES


@kernel
def resampled(x, fields, evidence, u):
    systematic_resample(x, fields, evidence, u)


def test_resampling_copies_in_proportion_to_weight():
    fields, rng = field_offsets(ModelKind(2, 1, AR_STATE, CONTINUOUS)), np.random.default_rng(6)
    data = rng.normal(size=(2, fields.end, LANES))
    before, weights = data.copy(), rng.exponential(size=(2, LANES)) ** 2
    data[:, fields.log_weight] = np.log(weights) - 3.0
    evidence = math.log(weights.sum()) - 3.0
    resampled(data.reshape(-1, LANES), fields, evidence, 0.37)
    copies = np.array([(data[:, 0] == mark).sum() for mark in before[:, 0].ravel()])
    assert copies.sum() == 2 * LANES
    assert np.abs(copies - 2 * LANES * (weights / weights.sum()).ravel()).max() < 1.0
    np.testing.assert_allclose(data[:, fields.log_weight], evidence - math.log(2 * LANES))


@kernel
def fitted(x, fields, size, normal, mean, precision):
    fit_proposal(x, fields.end, fields.theta, fields.log_weight, size, 0.0, normal)
    proposal_to_prior(normal, size, mean, precision)


def test_prior_has_the_moments_of_the_population():
    fields, rng, size = field_offsets(ModelKind(2, 3, AR_STATE, CONTINUOUS)), np.random.default_rng(7), 6
    data = rng.normal(size=(40, fields.end, LANES))
    data[:, 1] += data[:, 0]
    data[:, fields.log_weight] = -math.log(40 * LANES)
    mean, precision = np.zeros(size), np.zeros((size, size))
    normal = GaussianProposal(np.zeros(size), np.zeros((size, size)))
    fitted(data.reshape(-1, LANES), fields, size, normal, mean, precision)
    theta = np.moveaxis(data[:, :size], 1, 0).reshape(size, -1)
    cov = np.cov(theta, ddof=0)
    cov = np.where(np.eye(size) > 0, cov + 1e-6, 0.9 * cov)
    np.testing.assert_allclose(mean, theta.mean(axis=1), atol=1e-10)
    np.testing.assert_allclose(precision @ cov, np.eye(size), atol=1e-9)
