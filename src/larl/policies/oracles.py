"""The informed: they are built from the world's true parameters, or see its means. Yardsticks, never deployable."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._check import InvalidValue, checked, one_of
from larl._compile import assign, inline, inner
from larl._words import normal_pair
from larl.filter import Belief, belief, condition, observe, place, steady_state, steady_step
from larl.policies._contract import Policy, implement, register

if TYPE_CHECKING:
    from larl.world import LatentAR

Floats = NDArray[np.float64]


def the_world(policy: str, world: "LatentAR | None") -> "LatentAR":
    """The world an oracle is built from, or a refusal."""
    if world is None:
        raise InvalidValue(policy, "world", None, "the world whose parameters it knows")
    return world


@inline
def best_line(mu: Floats, beta: Floats, z: float) -> int:
    """The lowest arm with the largest μ_a + β_a z."""
    best, choice = -math.inf, 0
    for arm in range(mu.size):
        if mu[arm] + beta[arm] * z > best:
            best, choice = mu[arm] + beta[arm] * z, arm
    return choice


class ExactState(NamedTuple):
    belief: Belief


def exact_act(state: ExactState, word: np.uint64) -> int:
    belief = state.belief
    return best_line(belief.mu, belief.beta, belief.mean[place(belief)])


def exact_update(state: ExactState, arm: int, reward: float) -> None:
    observe(state.belief, arm, reward)


class SteadyFilterState(NamedTuple):
    z: Floats  # (k,) z̃_t
    next: Floats  # (k,) scratch
    closed: Floats  # (k, k) Γ − ΓKC
    push: Floats  # (k,) ΓK
    drift: Floats  # (k,)
    mu: Floats
    beta: Floats


def steady_act(state: SteadyFilterState, word: np.uint64) -> int:
    return best_line(state.mu, state.beta, state.z[0])


def steady_update(state: SteadyFilterState, arm: int, reward: float) -> None:
    steady_step(state.z, state.next, state.closed, state.push, state.drift, (reward - state.mu[arm]) / state.beta[arm])
    assign(state.z, state.next)


implement(SteadyFilterState, steady_act, steady_update)


@register(ExactState, exact_act, exact_update)
@dataclass(frozen=True)
class KalmanOracle(Policy):
    """The arm with the best mean at the Kalman prediction of z_t, with the world's true parameters.

    `filter="exact"` starts from the world's start and is the best prediction there is; `"steady"` is the paper's
    steady-state filter, started at the stationary mean.
    """

    needs_world: ClassVar[bool] = True
    filter: str = checked(one_of("exact", "steady"), "exact")

    def init(self, arms: int, *, horizon: int | None = None, world: "LatentAR | None" = None) -> Any:
        world = the_world("KalmanOracle", world)
        if self.filter == "exact":
            return ExactState(belief(world))
        steady, z = steady_state(world), np.full(world.k, world.stationary_mean)
        return SteadyFilterState(
            z, z.copy(), steady.closed, steady.push, steady.drift, np.array(world.mu), np.array(world.beta)
        )


class PredictiveState(NamedTuple):
    belief: Belief
    future: Floats  # (k, k) rows whose noisy observation, with variance 1, says what all rewards after t ≥ k − 1 say
    signal: float  # information about z_t in one reward of every arm


@inner
def sampling_variance(state: PredictiveState) -> float:
    """How much of the variance of z_t all future rewards would remove."""
    belief, at = state.belief, place(state.belief)
    mean, cov = belief.mean, belief.cov
    for i in range(belief.mean.size):
        mean, cov = condition(mean, cov, state.future[i], 1.0, 0.0)
    for i in range(at):  # z_{t+1} … z_{k−1} are part of the state and their rewards still to come
        c = np.zeros(belief.mean.size)
        c[i] = 1.0
        mean, cov = condition(mean, cov, c, 1.0 / state.signal, 0.0)
    return max(belief.cov[at, at] - cov[at, at], 0.0)


def predictive_act(state: PredictiveState, word: np.uint64) -> int:
    belief = state.belief
    draw, _ = normal_pair(word, 0)
    z = belief.mean[place(belief)] + math.sqrt(sampling_variance(state)) * draw
    return best_line(belief.mu, belief.beta, z)


def predictive_update(state: PredictiveState, arm: int, reward: float) -> None:
    observe(state.belief, arm, reward)


def future_information(world: "LatentAR", signal: float) -> Floats:
    """Rows h_i with Σ h_i h_iᵀ = Ω, the information on z⃗_t in all rewards after t.

    Ω = Γᵀ(J⁻¹ + W)⁻¹Γ with J = Ω + signal·e₁e₁ᵀ, iterated to its fixed point.
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


@register(PredictiveState, predictive_act, predictive_update)
@dataclass(frozen=True)
class PredictiveSampling(Policy):
    """Predictive sampling with the world's true parameters (Liu, Van Roy & Xu 2023).

    Thompson sampling explores for knowledge that drift will soon spoil. Predictive sampling draws z_t not from its
    posterior but from what of it the future rewards (of all arms, after t) would reveal: N(m, P − P|future).
    """

    needs_world: ClassVar[bool] = True

    def init(self, arms: int, *, horizon: int | None = None, world: "LatentAR | None" = None) -> PredictiveState:
        world = the_world("PredictiveSampling", world)
        if world.sigma_r == 0.0:
            raise InvalidValue("PredictiveSampling", "world.sigma_r", 0.0, "a world with reward noise, sigma_r > 0")
        seen = world.sd > 0.0
        signal = float(np.sum(np.square(np.array(world.beta)[seen] / world.sd[seen])))
        return PredictiveState(belief(world), future_information(world, signal), signal)


class DynamicState(NamedTuple):
    means: Floats  # (arms,) of the coming step


def dynamic_act(state: DynamicState, word: np.uint64) -> int:
    return best_line(state.means, state.means, 0.0)


def dynamic_update(state: DynamicState, arm: int, reward: float) -> None:
    pass


def dynamic_reveal(state: DynamicState, means: Floats) -> None:
    assign(state.means, means)


@register(DynamicState, dynamic_act, dynamic_update, dynamic_reveal)
@dataclass(frozen=True)
class DynamicOracle(Policy):
    """The best arm of every step: it sees z_t. Regret is measured against it, so its own is zero."""

    needs_world: ClassVar[bool] = True

    def init(self, arms: int, **_: Any) -> DynamicState:
        return DynamicState(np.zeros(arms))
