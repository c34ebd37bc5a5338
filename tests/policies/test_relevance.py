"""The relevance of a context's number is its posterior probability of an effect."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from larl._core.compile import kernel
from larl.policies._relevance import block_log_ratio

log_evidence = kernel(lambda cov, mean, prior, degrees: block_log_ratio(cov, mean, mean.size, prior, degrees))


@pytest.mark.parametrize("effect", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("rows", [2, 8, 60])
def test_log_evidence_is_that_of_the_marginal_densities(effect: float, rows: int) -> None:
    draws, size, prior_rows, prior_variance = np.random.default_rng(rows), 2, 3.0, 0.7
    x, y = draws.normal(size=(rows, size)), draws.normal(size=rows)
    y += effect * x[:, 0]
    prior = np.array([[1.5, 0.5], [0.5, 1.5]])
    cov = np.linalg.inv(np.linalg.inv(prior) + x.T @ x)
    mean = cov @ x.T @ y
    degrees = prior_rows + rows
    variance = (prior_rows * prior_variance + y @ y - mean @ x.T @ y) / degrees
    none, some = (prior_variance * (np.eye(rows) + part) for part in (np.zeros((rows, rows)), x @ prior @ x.T))
    expected = multivariate_t(shape=some, df=prior_rows).logpdf(y) - multivariate_t(shape=none, df=prior_rows).logpdf(y)
    found = log_evidence(cov.copy(), mean / np.sqrt(variance), np.linalg.slogdet(prior)[1], degrees)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
