"""Predictive sampling with known parameters: no exploration for short-lived information (Liu, Van Roy & Xu 2023)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from larl._core.compile import inner
from larl._core.random import Bits, normal
from larl._core.validation import InvalidValue
from larl.policies._bounds import STEPS, Bound
from larl.policies._contract import Policy
from larl.policies._oracle import known_world
from larl.policies._probabilities import Floats, Mask, argmax_line_probabilities, argmax_probabilities
from larl.policies._registry import register
from larl.statespace.kalman import (
    FilterState,
    best_arm,
    condition,
    current_offset,
    expected_reward,
    initial_filter_state,
    update_filter,
    update_filter_missing,
)
from larl.worlds.latent_ar import LatentAR

if TYPE_CHECKING:
    from larl.worlds.base import World


class PredictiveState(NamedTuple):
    belief: FilterState
    future: Floats  # (k, k) rows; observing them with noise variance 1 equals observing all rewards after t ≥ k − 1
    signal: float  # information on z_t in one reward of every arm


def bounds(initial: PredictiveState, state: PredictiveState) -> dict[str, Bound]:
    """Return the bounds of the whole numbers."""
    return {"belief.time": STEPS}


@inner
def sampling_variance(state: PredictiveState) -> float:
    """Return the part of the variance of z_t that all future rewards would remove."""
    belief, at = state.belief, current_offset(state.belief)
    mean, cov = belief.mean, belief.cov
    for i in range(belief.mean.size):
        mean, cov = condition(mean, cov, state.future[i], 1.0, 0.0)
    for i in range(at):  # z_{t+1} … z_{k−1} are part of the state; their rewards are in the future
        c = np.zeros(belief.mean.size)
        c[i] = 1.0
        mean, cov = condition(mean, cov, c, 1.0 / state.signal, 0.0)
    return max(belief.cov[at, at] - cov[at, at], 0.0)


def act(state: PredictiveState, bits: Bits) -> int:
    belief = state.belief
    z = np.empty(1)
    z[0] = belief.mean[current_offset(belief)] + math.sqrt(sampling_variance(state)) * normal(bits)
    return best_arm(belief.mu, belief.beta, z, 0)


def update(state: PredictiveState, arm: int, reward: float) -> None:
    update_filter(state.belief, arm, reward)


def update_missing(state: PredictiveState, arm: int) -> None:
    update_filter_missing(state.belief)


def predict(state: PredictiveState, arm: int) -> tuple[float, float]:
    belief = state.belief
    sd = abs(belief.beta[arm, 0]) * math.sqrt(sampling_variance(state))
    return expected_reward(belief.mu, belief.beta, belief.mean, current_offset(belief), arm), sd


def action_probabilities(state: PredictiveState, available: Mask, out: Floats) -> None:
    belief = state.belief
    variance, score = sampling_variance(state), np.empty(out.size)
    if variance > 0.0:
        argmax_line_probabilities(
            belief.mu, belief.beta[:, 0], belief.mean[current_offset(belief)], math.sqrt(variance), available, out
        )
    else:
        for arm in range(out.size):
            score[arm] = expected_reward(belief.mu, belief.beta, belief.mean, current_offset(belief), arm)
        argmax_probabilities(score, available, out)


def future_information(world: LatentAR, signal: float) -> Floats:
    """Return rows h_i with Σ h_i h_iᵀ = Ω, the information on z⃗_t in all rewards after t.

    Ω = Γᵀ(J⁻¹ + W)⁻¹Γ with J = Ω + signal·e₁e₁ᵀ, by fixed-point iteration.
    """
    gamma, noise, unit = world.system.gamma, world.system.noise, np.eye(world.k)[:, :1]
    information = np.zeros((world.k, world.k))
    for _ in range(100_000):
        joint = information + signal * unit @ unit.T
        following = gamma.T @ np.linalg.solve(np.eye(world.k) + joint @ noise, joint) @ gamma
        done = np.allclose(following, information, rtol=1e-13, atol=1e-13 * signal)
        information = (following + following.T) / 2.0
        if done:
            break
    size, vectors = np.linalg.eigh(information)
    return np.ascontiguousarray((vectors * np.sqrt(np.maximum(size, 0.0))).T)


@register(
    PredictiveState,
    act,
    update,
    bounds=bounds,
    update_missing=update_missing,
    predict=predict,
    action_probabilities=action_probabilities,
)
@dataclass(frozen=True)
class PredictiveSampling(Policy):
    """Predictive sampling with the world's true parameters (Liu, Van Roy & Xu 2023).

    Thompson sampling explores for information that drift soon makes useless. Predictive sampling draws z_t not from its
    posterior N(m, P), but from N(m, P − P given the future): the part that future rewards of all arms would reveal. It
    needs a `larl.LatentAR` with ``sigma_r > 0``.

    Examples
    --------
    >>> import larl
    >>> policy = larl.policies.PredictiveSampling()
    >>> result = larl.compare({"PS": policy}, larl.worlds.paper(1), horizon=200, trials=100)
    >>> result.summary()["mean"].round(0).item()
    86.0
    """

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> PredictiveState:
        world = known_world("PredictiveSampling", world, arms)
        if not isinstance(world, LatentAR):
            raise InvalidValue("PredictiveSampling", "world", world, "a larl.LatentAR: it draws one number for z_t")
        if world.sigma_r == 0.0:
            raise InvalidValue("PredictiveSampling", "world.sigma_r", 0.0, "a world with reward noise, sigma_r > 0")
        has_noise = world.sd > 0.0  # with scaled noise, an arm without noise has β = 0
        signal = float(np.sum(np.square(np.array(world.beta)[has_noise] / world.sd[has_noise])))
        return PredictiveState(initial_filter_state(world), future_information(world, signal), signal)
