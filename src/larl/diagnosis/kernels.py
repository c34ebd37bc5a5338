"""What a log costs most, compiled: the Kalman likelihood, the smoother, and sums over pairs of steps.

The state of a unit is (z_t … z_{t−k+1}, u): the latent AR(k) process with variance 1 in the long run, and the unit's
own level, which stands still. A row is a step with a reward: r = μ_a + β_a z_t + u + N(0, variance_a). `gap` counts the
steps from the row before; 0 begins a unit, −1 begins a later piece of one.
"""

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, kernel
from larl._core.random import POLICY, bits_to_index, random_bits, stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def from_partials(partials: Floats, gammas: Floats, acf: Floats) -> float:
    """Set γ and the autocorrelations 1, ρ_1 … ρ_k of the AR process with these partial ones; returns Var ξ / Var z.

    Durbin–Levinson: ρ_j = Σ_{i<j} γ_i ρ_{j−i} + φ_j v, v ← v(1 − φ_j²), γ_i ← γ_i − φ_j γ_{j−i}, γ_j = φ_j.
    """
    shock, before = 1.0, np.empty(partials.size)
    acf[0] = 1.0
    for j in range(partials.size):
        correlation = partials[j] * shock
        for i in range(j):
            correlation += gammas[i] * acf[j - i]
            before[i] = gammas[i]
        acf[j + 1] = correlation
        shock *= 1.0 - partials[j] * partials[j]
        for i in range(j):
            gammas[i] = before[i] - partials[j] * before[j - 1 - i]
        gammas[j] = partials[j]
    return shock


@inline
def begin(mean: Floats, cov: Floats, acf: Floats, scale: float, level: float) -> None:
    """A unit before its first row: z with `scale` times its long-run covariance, u with variance `level`."""
    k = mean.size - 1
    for i in range(k + 1):
        mean[i] = 0.0
        for j in range(k + 1):
            cov[i, j] = scale * acf[abs(i - j)] if i < k and j < k else 0.0
    cov[k, k] = level


@inline
def advance(mean: Floats, cov: Floats, gammas: Floats, shock: float, row: Floats) -> None:
    """One step of time: z_{t+1} = Σ γ_j z_{t+1−j} + ξ moves in, the oldest z moves out, u stays."""
    k, first = gammas.size, 0.0
    for j in range(k):
        first += gammas[j] * mean[j]
    for j in range(k + 1):
        row[j] = 0.0
    for i in range(k):
        for j in range(k + 1):
            row[j] += gammas[i] * cov[i, j]
    corner = shock
    for j in range(k):
        corner += gammas[j] * row[j]
    for i in range(k - 1, 0, -1):
        mean[i] = mean[i - 1]
        for j in range(i, 0, -1):
            cov[i, j] = cov[i - 1, j - 1]
            cov[j, i] = cov[i, j]
        cov[i, k] = cov[i - 1, k]
        cov[k, i] = cov[i, k]
    mean[0], cov[0, 0] = first, corner
    for j in range(1, k):
        cov[0, j] = row[j - 1]
        cov[j, 0] = row[j - 1]
    cov[0, k] = row[k]
    cov[k, 0] = row[k]


@kernel
def innovations(
    arm: Ints,
    gap: Ints,
    reward: Floats,
    gammas: Floats,
    acf: Floats,
    shock: Floats,
    mu: Floats,
    beta: Floats,
    variance: Floats,
    level: Floats,
    start: Floats,
    error: Floats,
    size: Floats,
) -> None:
    """For each of several settings (the leading axis), each row's error of prediction and its variance.

    Given these, the log-likelihood is −½ Σ (log 2π + log size + error²/size).
    """
    settings, k = gammas.shape
    mean, cov, row, seen = np.empty(k + 1), np.empty((k + 1, k + 1)), np.empty(k + 1), np.empty(k + 1)
    for one in range(settings):
        for t in range(arm.size):
            if gap[t] <= 0:
                begin(mean, cov, acf[one], start[one] if gap[t] == 0 else 1.0, level[one])
            for _ in range(gap[t]):
                advance(mean, cov, gammas[one], shock[one], row)
            a = arm[t]
            b = beta[one, a]
            for i in range(k + 1):
                seen[i] = b * cov[i, 0] + cov[i, k]
            total = b * seen[0] + seen[k] + variance[one, a]
            away = reward[t] - mu[one, a] - b * mean[0] - mean[k]
            error[one, t], size[one, t] = away, total
            for i in range(k + 1):
                gain = seen[i] / total
                mean[i] += gain * away
                for j in range(k + 1):
                    cov[i, j] -= gain * seen[j]


@kernel
def smooth(
    arm: Ints,
    gap: Ints,
    reward: Floats,
    gammas: Floats,
    acf: Floats,
    shock: float,
    mu: Floats,
    beta: Floats,
    variance: Floats,
    level: float,
    start: float,
    mean_of: Floats,
    variance_of: Floats,
    before: Floats,
) -> None:
    """Mean and variance of z_t at every row given the whole log, and into `before` the mean covariance before a reward.

    Backwards from predictions (de Jong 1989): r ← c·error/size + (I − c gainᵀ) r, N likewise; then z = a + P r and its
    variance is P − P N P.
    """
    n, k = arm.size, gammas.size
    d = k + 1
    means, covs, errors, sizes = np.empty((n, d)), np.empty((n, d, d)), np.empty(n), np.empty(n)
    mean, cov, row, seen = np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d)
    for t in range(n):
        if gap[t] <= 0:
            begin(mean, cov, acf, start if gap[t] == 0 else 1.0, level)
        for _ in range(gap[t]):
            advance(mean, cov, gammas, shock, row)
        b = beta[arm[t]]
        for i in range(d):
            seen[i] = b * cov[i, 0] + cov[i, k]
            means[t, i] = mean[i]
            for j in range(d):
                covs[t, i, j] = cov[i, j]
                if i < k and j < k:
                    before[i, j] += cov[i, j] / n
        errors[t] = reward[t] - mu[arm[t]] - b * mean[0] - mean[k]
        sizes[t] = b * seen[0] + seen[k] + variance[arm[t]]
        for i in range(d):
            gain = seen[i] / sizes[t]
            mean[i] += gain * errors[t]
            for j in range(d):
                cov[i, j] -= gain * seen[j]
    pull, narrow, left = np.zeros(d), np.zeros((d, d)), np.empty((d, d))
    for t in range(n - 1, -1, -1):
        b, s = beta[arm[t]], sizes[t]
        for i in range(d):
            seen[i] = (b * covs[t, i, 0] + covs[t, i, k]) / s  # the gain
        inner, both = errors[t] / s, 1.0 / s
        for i in range(d):
            inner -= seen[i] * pull[i]
            row[i] = 0.0
            for j in range(d):
                row[i] += narrow[i, j] * seen[j]
        for i in range(d):
            both += seen[i] * row[i]
        for i in range(d):
            c = b if i == 0 else (1.0 if i == k else 0.0)
            pull[i] += c * inner
            for j in range(d):
                other = b if j == 0 else (1.0 if j == k else 0.0)
                narrow[i, j] += c * other * both - c * row[j] - row[i] * other
        mean_of[t], variance_of[t] = means[t, 0], covs[t, 0, 0]
        for i in range(d):
            mean_of[t] += covs[t, 0, i] * pull[i]
            for j in range(d):
                variance_of[t] -= covs[t, 0, i] * narrow[i, j] * covs[t, j, 0]
        if gap[t] <= 0:
            for i in range(d):
                pull[i] = 0.0
                for j in range(d):
                    narrow[i, j] = 0.0
        for _ in range(gap[t]):  # r ← Γᵀr, N ← ΓᵀNΓ
            retreat_vector(pull, gammas)
            for i in range(d):
                retreat_vector(narrow[i], gammas)
            for j in range(d):
                for i in range(d):
                    left[j, i] = narrow[i, j]
            for j in range(d):
                retreat_vector(left[j], gammas)
            for j in range(d):
                for i in range(d):
                    narrow[i, j] = left[j, i]


@inline
def retreat_vector(vector: Floats, gammas: Floats) -> None:
    """Γᵀ times a vector, Γ the companion matrix of γ and 1 for u."""
    k, first = gammas.size, vector[0]
    for j in range(k):
        vector[j] = gammas[j] * first + (vector[j + 1] if j + 1 < k else 0.0)


@kernel
def pair_sums(arm: Ints, gap: Ints, lags: int, residual: Floats, sums: Floats) -> None:
    """sums[ℓ−1, a, b] += e_t e_{t−ℓ} over all pairs of rows of one unit that are ℓ ≤ lags steps apart, arms (a, b)."""
    for t in range(arm.size):
        apart, other = 0, t
        while other > 0 and gap[other] > 0:
            apart += gap[other]
            other -= 1
            if apart > lags:
                break
            sums[apart - 1, arm[t], arm[other]] += residual[t] * residual[other]


@kernel
def shuffled_sums(
    arm: Ints, gap: Ints, order: Ints, first: Ints, lags: int, residual: Floats, seed: int, sums: Floats
) -> None:
    """`pair_sums` of each of sums.shape[0] logs in which the residuals of every cell changed places at random.

    `order` lists rows cell by cell; cell c is order[first[c]] … order[first[c + 1] − 1].
    """
    moved = np.empty(residual.size)
    for i in range(residual.size):
        moved[i] = residual[i]
    for one in range(sums.shape[0]):
        key = stream(seed, one, POLICY)
        for c in range(first.size - 1):
            for i in range(first[c + 1] - 1, first[c], -1):
                j = first[c] + bits_to_index(random_bits(key, i), i - first[c] + 1)
                here, there = order[i], order[j]
                moved[here], moved[there] = moved[there], moved[here]
        pair_sums(arm, gap, lags, moved, sums[one])
