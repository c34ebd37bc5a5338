"""The paper's reduction in numbers, corrected: θ_a and the bias (Lemma 2), the noise, the bound on contexts (Lemma 4).

Where the paper slips, the code follows the mathematics: θ_a is (β̃, −μ̃, μ_a), γ₀ enters its intercept, and the bound on
contexts counts the variance of z_t and holds for all steps at once.
"""

import math

import numpy as np
from numpy.typing import NDArray

from larl.filter import steady_state
from larl.world import LatentAR

Floats = NDArray[np.float64]


def reward_parameters(world: LatentAR, s: int) -> Floats:
    """θ_a for every arm, shape (arms, 2s|A|+1), in the order of Φ_t(s) = [R_t, A_t, 1], oldest lag first (Lemma 2).

    With g_j = e₁ᵀ(Γ−ΓKC)^j ΓK: R's entry of lag j under arm b is β_a g_j/β_b, A's is −β_a g_j μ_b/β_b, and the
    intercept is μ_a + β_a e₁ᵀ Σ_{j<s} (Γ−ΓKC)^j γ₀e₁.
    """
    steady = steady_state(world)
    beta, mu = np.array(world.beta), np.array(world.mu)
    power, weights, drift = np.eye(world.k)[0], np.empty(s), 0.0
    for j in range(s):
        weights[j] = power @ steady.push
        drift += power @ steady.drift
        power = power @ steady.closed
    rewards = np.kron(weights[::-1], 1.0 / beta)
    actions = np.kron(weights[::-1], -mu / beta)
    return np.concatenate([np.outer(beta, rewards), np.outer(beta, actions), (mu + beta * drift)[:, None]], axis=1)


def bias_row(world: LatentAR, s: int) -> Floats:
    """e₁ᵀ(Γ−ΓKC)^s: the bias of Lemma 2 is b_t(a, s) = β_a · bias_row · z̃_{t−s}."""
    row: Floats = np.linalg.matrix_power(steady_state(world).closed, s)[0]
    return row


def noise_scale(world: LatentAR) -> Floats:
    """R_a = √(β_a²P₁₁ + sd_a²), the standard deviation of r_t(a) around its steady-state prediction."""
    result: Floats = np.sqrt(np.square(world.beta) * steady_state(world).cov[0, 0] + world.sd**2)
    return result


def context_bound(world: LatentAR, s: int, delta: float, horizon: int) -> float:
    """L with ‖Φ_t(s)‖² ≤ L for all t ≤ horizon with probability ≥ 1 − delta (Lemma 4, corrected).

    Each reward is normal; its variance counts Var z_t and the union is over all steps:
    |r_t| ≤ |μ_a + β_a E z_t| + √(2(β_a² Var z_t + sd_a²) log(2T/δ)), the worst over arms and steps; L = s(r² + 1) + 1.
    """
    mean, cov = world.start_moments
    beta, mu, tail = np.array(world.beta), np.array(world.mu), 2.0 * math.log(2.0 * horizon / delta)
    means, variances = list(mean), list(np.diag(cov))
    state, spread = mean[::-1], cov[::-1, ::-1]
    system = world.system
    for _ in range(world.k, horizon):
        state, spread = system.gamma @ state + system.drift, system.gamma @ spread @ system.gamma.T + system.noise
        means.append(state[0])
        variances.append(spread[0, 0])
        if np.allclose(spread, world.stationary_cov, rtol=1e-12) and np.allclose(state, world.stationary_mean):
            break
    centre = np.abs(mu + np.outer(means, beta))
    largest = float((centre + np.sqrt(tail * (np.outer(variances, beta**2) + world.sd**2))).max())
    return s * (largest**2 + 1.0) + 1.0
