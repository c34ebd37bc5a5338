"""AdaptiveLARL before the first reward: sign patterns, indices of the regressors, regressions without data."""

from typing import Any

import numpy as np

from larl.policies._linalg.ridge import Floats, Ridge

MAX_TIED_ARMS = 5  # 2⁴ sign patterns


def sign_patterns(arms: int) -> Floats:
    """Return one row per pattern: ones for untied members, then every choice of signs with the first positive."""
    choices = 2 ** (arms - 1) if arms <= MAX_TIED_ARMS else 0
    tied = [[1.0] + [1.0 - 2.0 * (choice >> a & 1) for a in range(arms - 1)] for choice in range(choices)]
    return np.array([[1.0] * arms, *tied])


def context_indices(arms: int, contexts: int, lags: int) -> Any:
    """Return the index of each context number and lag: untied, then tied, for each arm if there is a context."""
    untied, rows = [*range(1, 1 + contexts), *[0] * lags], arms if contexts else 1
    after = arms * (1 + contexts) + np.arange(lags)
    tied = [[*(arms + arm * contexts + np.arange(contexts)), *after] for arm in range(rows)]
    return np.array([untied, *tied], dtype=np.int64)


def empty_ridges(penalties: Any, signs: Any, lags: int, per_lag: int, contexts: int) -> Ridge:
    """Return regressions without data, V = Λ, one per row of (lag, intercept, effect) penalties, for unit 1.

    There is an intercept for each column of `signs`, the sign of f of the arms in each regression, and then a
    coefficient of each context number for each of them: a common part, and one of their own, with the same penalty.
    """
    lag, blocks = 1.0 + np.arange(lags * per_lag) // per_lag, signs.shape[1]
    size, first = blocks * (1 + contexts) + lags * per_lag, blocks * (1 + contexts)
    inverse = np.zeros((len(penalties), size, size))
    for row, (of_lag, of_intercept, *of_effect) in enumerate(penalties):
        diagonal = np.array([of_intercept] * blocks + [1.0] * (blocks * contexts) + (of_lag * lag).tolist())
        inverse[row] = np.diag(1.0 / diagonal)
        if contexts:
            common = np.outer(signs[row], signs[row]) + np.eye(blocks)
            inverse[row, blocks:first, blocks:first] = np.kron(common / of_effect[0], np.eye(contexts))
    return Ridge(inverse, np.zeros((len(penalties), size)), np.zeros(size), 0.0)
