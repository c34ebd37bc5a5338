"""Worlds beyond the paper's definition, to see what LARL does where its assumptions fail."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from larl._core.compile import assign, copy_fields, implement
from larl._core.random import GOLDEN, UNIT_PARAMETERS, bits_to_uniform, normal_pair, random_bits, stream
from larl._core.validation import (
    InvalidValue,
    Matrix,
    Vector,
    check_fields,
    checked,
    instance,
    known_fields,
    mapping,
    matrix,
    number,
    numbers,
    required,
    spec,
)
from larl.worlds.base import LinearGaussianWorld, World
from larl.worlds.kernels import Floats, Latent, advance, begin, react, set_means
from larl.worlds.latent_ar import LatentAR
from larl.worlds.latent_var import LatentVAR
from larl.worlds.stateless import ChangePoints as ChangePoints
from larl.worlds.stateless import Seasonal as Seasonal


@spec
class WrappedWorld(World):
    """A latent AR or VAR bandit with something changed."""

    base: LinearGaussianWorld

    def __post_init__(self) -> None:
        check_fields(self)
        instance(LinearGaussianWorld, "a larl.LatentAR or larl.LatentVAR")(type(self).__name__, "base", self.base)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of arms."""
        return self.base.arms

    @property
    def k(self) -> int:  # type: ignore[override]
        """The order of the latent process."""
        return self.base.k

    def state_of(self, latent: Any) -> Any:
        """The latent state of the current step."""
        return self.base.state_of(latent.base)

    def to_dict(self) -> dict[str, Any]:
        """The world as JSON types."""
        return super().to_dict() | {"base": self.base.to_dict()}


class TailsState(NamedTuple):
    base: Latent
    means: Floats
    sd: Floats
    df: float


def tails_begin(latent: TailsState, seed: int, trial: int) -> None:
    begin(latent.base, seed, trial)


def tails_advance(latent: TailsState, key: np.uint64, t: int) -> float:
    advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    # Student's t by the polar method (Bailey 1994), scaled to variance 1.
    radius = latent.df * ((1.0 - bits_to_uniform(random_bits(key ^ GOLDEN, 2 * t))) ** (-2.0 / latent.df) - 1.0)
    angle = 2.0 * math.pi * bits_to_uniform(random_bits(key ^ GOLDEN, 2 * t + 1))
    return math.sqrt(radius * (latent.df - 2.0) / latent.df) * math.cos(angle)


implement(begin, TailsState, tails_begin)
implement(advance, TailsState, tails_advance)


@spec
class HeavyTails(WrappedWorld):
    """A latent bandit whose reward noise is Student's t with `df` > 2 degrees of freedom, of the same variance."""

    df: float = checked(number(above=2.0), 3.0)

    @property
    def filterable(self) -> LinearGaussianWorld:
        """The world whose Kalman filter is the best linear one here."""
        return self.base

    def latent(self) -> TailsState:
        return TailsState(self.base.latent(), np.zeros(self.arms), self.base.sd, self.df)


class BurdenState(NamedTuple):
    base: Latent
    means: Floats
    sd: Floats
    effect: Floats  # (arms,)
    push: Floats  # (1,) what the arm played last adds to the next z


def burden_begin(latent: BurdenState, seed: int, trial: int) -> None:
    begin(latent.base, seed, trial)


def burden_advance(latent: BurdenState, key: np.uint64, t: int) -> float:
    noise = advance(latent.base, key, t)
    if t >= latent.base.recent.size:
        latent.base.recent[0] += latent.push[0]
        set_means(latent.base)
    assign(latent.means, latent.base.means)
    return noise


def burden_react(latent: BurdenState, arm: int) -> None:
    latent.push[0] = latent.effect[arm]


implement(begin, BurdenState, burden_begin)
implement(advance, BurdenState, burden_advance)
implement(react, BurdenState, burden_react)


@spec
class Burden(WrappedWorld):
    """A latent AR bandit whose state feels the actions: arm a adds effect_a to the next z (a prompt that tires).

    Regret is against the best arm at the state that the policy's own actions led to.
    """

    effect: Vector = required(numbers(2))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, LatentAR):
            raise InvalidValue("Burden", "base", self.base, "a larl.LatentAR: an effect is one number")
        if len(self.effect) != self.base.arms:
            raise InvalidValue("Burden", "effect", self.effect, f"{self.base.arms} numbers, one for each arm")

    def latent(self) -> BurdenState:
        return BurdenState(self.base.latent(), np.zeros(self.arms), self.base.sd, np.array(self.effect), np.zeros(1))


class ContextState(NamedTuple):
    base: Latent
    means: Floats
    sd: Floats
    context: Floats  # (p,) of this step
    eta: Floats  # (arms, p)
    memory: float


def context_begin(latent: ContextState, seed: int, trial: int) -> None:
    begin(latent.base, seed, trial)


def context_advance(latent: ContextState, key: np.uint64, t: int) -> float:
    noise, draws = advance(latent.base, key, t), random_bits(key ^ GOLDEN, t)
    keep = latent.memory if t > 0 else 0.0
    for i in range(latent.context.size):
        draw, _ = normal_pair(draws, i)
        latent.context[i] = keep * latent.context[i] + math.sqrt(1.0 - keep * keep) * draw
    for arm in range(latent.means.size):
        latent.means[arm] = latent.base.means[arm]
        for i in range(latent.context.size):
            latent.means[arm] += latent.eta[arm, i] * latent.context[i]
    return noise


implement(begin, ContextState, context_begin)
implement(advance, ContextState, context_advance)


@spec
class Contextual(WrappedWorld):
    """A latent bandit that shows a context x_t before every step: the mean reward is that of `base` plus η_aᵀx_t.

    Each of the p numbers of x is N(0, 1), on its own, with autocorrelation `memory` from one step to the next.
    """

    eta: Matrix = required(matrix())
    memory: float = checked(number(0.0, below=1.0), 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.eta) != self.base.arms:
            raise InvalidValue("Contextual", "eta", self.eta, f"{self.base.arms} rows, one for each arm")

    @property
    def context(self) -> int:
        """How many numbers are shown."""
        return len(self.eta[0])

    def latent(self) -> ContextState:
        means, context = np.zeros(self.arms), np.zeros(self.context)
        return ContextState(self.base.latent(), means, self.base.sd, context, np.array(self.eta), self.memory)


class HeterogeneousState(NamedTuple):
    base: Latent
    means: Floats
    sd: Floats
    mu: Floats  # (arms,) the base's
    beta: Floats  # (arms, m)
    mu_sd: float
    beta_sd: float
    sigma_r: float
    scaled: bool  # whether the noise of an arm grows with its β


def heterogeneous_begin(latent: HeterogeneousState, seed: int, trial: int) -> None:
    begin(latent.base, seed, trial)
    key, m = stream(seed, trial, UNIT_PARAMETERS), latent.beta.shape[1]
    for arm in range(latent.mu.size):
        draw, length = normal_pair(key, arm * (m + 1))[0], 0.0
        latent.base.mu[arm] = latent.mu[arm] + latent.mu_sd * draw
        for i in range(m):
            draw = normal_pair(key, arm * (m + 1) + 1 + i)[0]
            latent.base.beta[arm, i] = latent.beta[arm, i] + latent.beta_sd * draw
            length = math.hypot(length, latent.base.beta[arm, i])
        latent.sd[arm] = latent.sigma_r * (length if latent.scaled else 1.0)


def heterogeneous_advance(latent: HeterogeneousState, key: np.uint64, t: int) -> float:
    noise = advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    return noise


implement(begin, HeterogeneousState, heterogeneous_begin)
implement(advance, HeterogeneousState, heterogeneous_advance)


@spec
class HeterogeneousUnits(WrappedWorld):
    """A latent bandit of which every trial has its own: each μ_a and β_a is the base's plus N(0, mu²) and N(0, beta²).

    In a cohort every unit is a trial, so these are units that differ. With scaled noise an arm's sd follows its own β.
    """

    mu: float = checked(number(0.0), 0.0)
    beta: float = checked(number(0.0), 0.0)

    def latent(self) -> HeterogeneousState:
        base, means, sd = copy_fields(self.base.latent()), np.zeros(self.arms), np.zeros(self.arms)
        mu, beta, scaled = np.array(self.base.mu), self.base.loadings, self.base.noise == "scaled"
        return HeterogeneousState(base, means, sd, mu, beta, self.mu, self.beta, self.base.sigma_r, scaled)


KINDS: dict[str, type[World]] = {
    kind.__name__: kind
    for kind in (LatentAR, LatentVAR, HeavyTails, Burden, Contextual, HeterogeneousUnits, ChangePoints, Seasonal)
}


def from_dict(values: Mapping[str, Any], owner: str = "") -> World:
    """The world that `to_dict` wrote; without a `world` that names its kind it is a LatentAR."""
    kind = mapping(owner or "world", "fields", values).get("world", "LatentAR")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidValue(owner or "world", "world", kind, ", ".join(KINDS))
    found = KINDS[kind]
    if issubclass(found, LinearGaussianWorld):
        return found.from_dict(values, owner or kind)
    given = known_fields(found, {key: value for key, value in values.items() if key != "world"}, owner or kind)
    if isinstance(given.get("base"), Mapping):
        given["base"] = from_dict(given["base"], f"{owner or kind}.base")
    return found(**given)
