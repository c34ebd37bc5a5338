"""The Kalman filter and smoother of a log: a latent AR(k) process per unit, observed at irregular steps.

The state of a unit is (z_t … z_{t−k+1}, u): the latent AR(k) process, scaled to stationary variance 1, and the unit's
constant level u. A row is a step with a reward: r = μ_a + β_a z_t + u + N(0, variance_a). `gap` is the number of steps
since the previous row; 0 starts a unit, −1 starts a later segment of a unit.

The companion form of z lets `advance` shift the covariance in place. That is why it does not use `kalman.predict`,
which takes any matrix Γ.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, kernel
from larl.statespace.kalman import measurement_update

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ARParameters(NamedTuple):
    """Parameters of the model. `innovations` takes several settings along a leading axis, `smooth` a single one."""

    gammas: Floats  # (settings, k)
    acf: Floats  # (settings, k + 1) autocorrelations 1, ρ_1 … ρ_k of z
    shock: Floats  # (settings,) variance of ξ
    mu: Floats  # (settings, arms)
    beta: Floats  # (settings, arms)
    variance: Floats  # (settings, arms) of the reward noise
    level: Floats  # (settings,) variance of a unit's level u
    start: Floats  # (settings,) factor of the stationary covariance at a unit's first row

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={list(np.shape(value))}" for name, value in self._asdict().items())
        return f"ARParameters({shapes})"


@inline
def begin_unit(mean: Floats, cov: Floats, acf: Floats, scale: float, level: float) -> None:
    """Set the moments before a unit's first row: z has `scale` times its stationary covariance, u variance `level`."""
    k = mean.size - 1
    for i in range(k + 1):
        mean[i] = 0.0
        for j in range(k + 1):
            cov[i, j] = scale * acf[abs(i - j)] if i < k and j < k else 0.0
    cov[k, k] = level


@inline
def advance(mean: Floats, cov: Floats, gammas: Floats, shock: float, gamma_cov: Floats) -> None:
    """Predict one step: z_{t+1} = Σ γ_j z_{t+1−j} + ξ enters the state, the oldest z leaves it, u stays.

    `gamma_cov` is scratch.
    """
    k, first = gammas.size, 0.0
    for j in range(k):
        first += gammas[j] * mean[j]
    for j in range(k + 1):
        gamma_cov[j] = 0.0
    for i in range(k):
        for j in range(k + 1):
            gamma_cov[j] += gammas[i] * cov[i, j]
    corner = shock
    for j in range(k):
        corner += gammas[j] * gamma_cov[j]
    for i in range(k - 1, 0, -1):
        mean[i] = mean[i - 1]
        for j in range(i, 0, -1):
            cov[i, j] = cov[i - 1, j - 1]
            cov[j, i] = cov[i, j]
        cov[i, k] = cov[i - 1, k]
        cov[k, i] = cov[i, k]
    mean[0], cov[0, 0] = first, corner
    for j in range(1, k):
        cov[0, j] = gamma_cov[j - 1]
        cov[j, 0] = gamma_cov[j - 1]
    cov[0, k] = gamma_cov[k]
    cov[k, 0] = gamma_cov[k]


@kernel
def innovations(
    arm: Ints, gap: Ints, reward: Floats, parameters: ARParameters, innovation: Floats, innovation_variance: Floats
) -> None:
    """Set every row's innovation (prediction error) and its variance, for each of several settings.

    The log-likelihood of a setting is −½ Σ (log 2π + log innovation_variance + innovation²/innovation_variance).
    """
    settings, k = parameters.gammas.shape
    mean, cov, row, cov_c = np.empty(k + 1), np.empty((k + 1, k + 1)), np.empty(k + 1), np.empty(k + 1)
    for setting in range(settings):
        for t in range(arm.size):
            if gap[t] <= 0:
                scale = parameters.start[setting] if gap[t] == 0 else 1.0
                begin_unit(mean, cov, parameters.acf[setting], scale, parameters.level[setting])
            for _ in range(gap[t]):
                advance(mean, cov, parameters.gammas[setting], parameters.shock[setting], row)
            a = arm[t]
            b = parameters.beta[setting, a]
            for i in range(k + 1):
                cov_c[i] = b * cov[i, 0] + cov[i, k]
            total = b * cov_c[0] + cov_c[k] + parameters.variance[setting, a]
            error = reward[t] - parameters.mu[setting, a] - b * mean[0] - mean[k]
            innovation[setting, t], innovation_variance[setting, t] = error, total
            measurement_update(mean, cov, cov_c, total, error)


@kernel
def smooth(
    arm: Ints,
    gap: Ints,
    reward: Floats,
    parameters: Any,
    smoothed_mean: Floats,
    smoothed_variance: Floats,
    mean_predicted_cov: Floats,
) -> None:
    """Set the mean and variance of z_t at every row given all rewards, and the average predicted covariance of z⃗_t.

    Backward recursion (de Jong 1989) with c the observation vector, v the innovation, F its variance and K the gain:
    r ← c v/F + (I − cKᵀ) r, and likewise N; then z = m + P r with variance P − P N P.
    """
    gammas, mu, beta = parameters.gammas, parameters.mu, parameters.beta
    n, k = arm.size, gammas.size
    d = k + 1
    means, covs, errors, variances = np.empty((n, d)), np.empty((n, d, d)), np.empty(n), np.empty(n)
    mean, cov, row, cov_c = np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d)
    for t in range(n):
        if gap[t] <= 0:
            begin_unit(mean, cov, parameters.acf, parameters.start if gap[t] == 0 else 1.0, parameters.level)
        for _ in range(gap[t]):
            advance(mean, cov, gammas, parameters.shock, row)
        b = beta[arm[t]]
        for i in range(d):
            cov_c[i] = b * cov[i, 0] + cov[i, k]
            means[t, i] = mean[i]
            for j in range(d):
                covs[t, i, j] = cov[i, j]
                if i < k and j < k:
                    mean_predicted_cov[i, j] += cov[i, j] / n
        errors[t] = reward[t] - mu[arm[t]] - b * mean[0] - mean[k]
        variances[t] = b * cov_c[0] + cov_c[k] + parameters.variance[arm[t]]
        measurement_update(mean, cov, cov_c, variances[t], errors[t])
    r, information, transposed, gain = np.zeros(d), np.zeros((d, d)), np.empty((d, d)), np.empty(d)
    for t in range(n - 1, -1, -1):
        b, s = beta[arm[t]], variances[t]
        for i in range(d):
            gain[i] = (b * covs[t, i, 0] + covs[t, i, k]) / s
        scaled_error, scaled_information = errors[t] / s, 1.0 / s
        for i in range(d):
            scaled_error -= gain[i] * r[i]
            row[i] = 0.0
            for j in range(d):
                row[i] += information[i, j] * gain[j]
        for i in range(d):
            scaled_information += gain[i] * row[i]
        for i in range(d):
            c = b if i == 0 else (1.0 if i == k else 0.0)
            r[i] += c * scaled_error
            for j in range(d):
                other_c = b if j == 0 else (1.0 if j == k else 0.0)
                information[i, j] += c * other_c * scaled_information - c * row[j] - row[i] * other_c
        smoothed_mean[t], smoothed_variance[t] = means[t, 0], covs[t, 0, 0]
        for i in range(d):
            smoothed_mean[t] += covs[t, 0, i] * r[i]
            for j in range(d):
                smoothed_variance[t] -= covs[t, 0, i] * information[i, j] * covs[t, j, 0]
        if gap[t] <= 0:
            for i in range(d):
                r[i] = 0.0
                for j in range(d):
                    information[i, j] = 0.0
        for _ in range(gap[t]):  # r ← Γᵀr, N ← ΓᵀNΓ
            multiply_transposed(r, gammas)
            for i in range(d):
                multiply_transposed(information[i], gammas)
            for j in range(d):
                for i in range(d):
                    transposed[j, i] = information[i, j]
            for j in range(d):
                multiply_transposed(transposed[j], gammas)
            for j in range(d):
                for i in range(d):
                    information[i, j] = transposed[j, i]


@inline
def multiply_transposed(vector: Floats, gammas: Floats) -> None:
    """Multiply a vector by Γᵀ in place. Γ is the companion matrix of γ, with a 1 for u."""
    k, first = gammas.size, vector[0]
    for j in range(k):
        vector[j] = gammas[j] * first + (vector[j + 1] if j + 1 < k else 0.0)
