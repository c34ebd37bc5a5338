"""The Durbin–Levinson recursion: from partial autocorrelations to the coefficients of a stable AR process."""

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import kernel

Floats = NDArray[np.float64]


@kernel
def ar_from_partial_autocorrelations(partials: Floats, gammas: Floats, acf: Floats) -> float:
    """Set γ_1 … γ_k and the autocorrelations 1, ρ_1 … ρ_k of an AR(k) process; return Var ξ / Var z.

    For j = 1 … k with partial autocorrelations φ_j and v = 1 at the start:
    ρ_j = Σ_{i<j} γ_i ρ_{j−i} + φ_j v, v ← v(1 − φ_j²), γ_i ← γ_i − φ_j γ_{j−i}, γ_j = φ_j.

    `policies/auto/parameters.py` has a second version of the recursion for γ: it updates many particles at once in a
    structure of arrays, without temporary arrays. This function would be much slower there.
    """
    shock_variance, previous = 1.0, np.empty(partials.size)
    acf[0] = 1.0
    for j in range(partials.size):
        correlation = partials[j] * shock_variance
        for i in range(j):
            correlation += gammas[i] * acf[j - i]
            previous[i] = gammas[i]
        acf[j + 1] = correlation
        shock_variance *= 1.0 - partials[j] * partials[j]
        for i in range(j):
            gammas[i] = previous[i] - partials[j] * previous[j - 1 - i]
        gammas[j] = partials[j]
    return shock_variance
