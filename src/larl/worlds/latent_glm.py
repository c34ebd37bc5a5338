"""A latent AR bandit with binary, count or zero-inflated rewards: a generalised linear model of the latent state."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import implement
from larl._core.validation import (
    InvalidValue,
    Vector,
    check_fields,
    checked,
    number,
    numbers,
    one_of,
    optional,
    required,
    spec,
)
from larl.worlds.base import World, read_process_fields
from larl.worlds.families import (
    HURDLE,
    LOGIT,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    RewardFamily,
    mean_reward,
    mean_rewards,
    quantile,
)
from larl.worlds.kernels import Floats, Latent, advance, begin, draw_reward
from larl.worlds.latent_ar import LatentAR
from larl.worlds.start import JointNormal, Normal

CODES = {  # (family, link): code; the first link of a family is its default
    ("bernoulli", "logit"): LOGIT,
    ("bernoulli", "probit"): PROBIT,
    ("poisson", "log"): POISSON,
    ("negative_binomial", "log"): NEGATIVE_BINOMIAL,
    ("hurdle", "logit"): HURDLE,
}
OWN_FIELDS = {  # fields of one family: the family, the default
    "dispersion": ("negative_binomial", 1.0),
    "upper": ("hurdle", 1.0),
    "offset": ("hurdle", 0.0),
}


class GLMState(NamedTuple):
    """A `LatentGLM` world inside a kernel. The means of `base` are the linear predictors η."""

    base: Latent
    means: Floats  # (arms,) E[r(a) | z_t]
    family: RewardFamily


def glm_begin(latent: GLMState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1}."""
    begin(latent.base, seed, trial)


def glm_advance(latent: GLMState, key: np.uint64, t: int) -> float:
    """Move z to step t, set the conditional means and return standard normal noise."""
    noise = advance(latent.base, key, t)
    for arm in range(latent.means.size):
        latent.means[arm] = mean_reward(latent.family, latent.base.means[arm])
    return noise


def glm_draw_reward(latent: GLMState, arm: int, noise: float) -> float:
    """Return the arm's quantile at Φ(noise): a larger noise gives no arm a smaller reward."""
    return quantile(latent.family, latent.base.means[arm], noise)


implement(begin, GLMState, glm_begin)
implement(advance, GLMState, glm_advance)
implement(draw_reward, GLMState, glm_draw_reward)


@spec
class LatentGLM(World):
    """A latent AR(k) bandit whose rewards are binary, counts, or zero-inflated and bounded.

    The latent state z_t is that of `larl.LatentAR`. Arm a has the linear predictor η_a = μ_a + β_a z_t. Given z_t, the
    rewards of different steps are independent:

    - ``"bernoulli"``: P(r = 1) = logistic(η), or Φ(η) with ``link="probit"``.
    - ``"poisson"``: mean exp(η), at most 10⁶.
    - ``"negative_binomial"``: mean m = exp(η), at most 10⁶, and variance m + dispersion · m².
    - ``"hurdle"``: P(r > 0) = logistic(η + offset). Given r > 0, r/upper has the distribution Beta(exp(η), 1), so that
      E[r] = upper · logistic(η + offset) · logistic(η), with −30 ≤ η ≤ 30 in the last factor.

    Regret is the difference of the conditional means E[r(a) | z_t].

    Parameters
    ----------
    gammas : sequence of k floats
        Coefficients γ_1 … γ_k. The process must be stable: the companion matrix has spectral radius < 1.
    beta : sequence of float, one per arm (2 or more)
        Effect of z on each arm's linear predictor.
    mu : sequence of float, one per arm
        Linear predictor of each arm at z = 0.
    family : {"bernoulli", "poisson", "negative_binomial", "hurdle"}, default "bernoulli"
        Distribution of the rewards.
    link : {"logit", "probit", "log"}, optional
        Link of the mean. By default ``"logit"`` (``"bernoulli"``, ``"hurdle"``) or ``"log"`` (counts); ``"probit"`` is
        for ``"bernoulli"`` only.
    gamma0 : float, default 0.0
        Intercept γ₀ of the latent process.
    sigma_z : float, >= 0, default 1.0
        Standard deviation of the shocks of the latent process.
    start : "stationary", Normal or JointNormal, default "stationary"
        Distribution of z_0 … z_{k−1}.
    dispersion : float, 1e-6 to 10, optional
        Of ``"negative_binomial"`` only; 1.0 by default.
    upper : float, 1e-50 to 1e50, optional
        Largest reward, in units of the reward; of ``"hurdle"`` only, 1.0 by default.
    offset : float, optional
        Added to η in the probability of a positive reward; of ``"hurdle"`` only, 0.0 by default.

    Raises
    ------
    InvalidValue
        If a value is not accepted, the process is not stable, or the family has no such link or field.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.LatentGLM(gammas=(0.9,), beta=(-1, 1), mu=(0, 0), sigma_z=0.4)
    >>> simulator = larl.worlds.Simulator(world, seed=0, trial=0)
    >>> simulator.means.round(2), simulator.reward(0), simulator.reward(1)
    (array([0.82, 0.18]), 1.0, 0.0)
    """

    gammas: Vector = required(numbers())
    beta: Vector = required(numbers(2))
    mu: Vector = required(numbers(2))
    family: str = checked(one_of("bernoulli", "poisson", "negative_binomial", "hurdle"), "bernoulli")
    link: str | None = checked(optional(one_of("logit", "probit", "log")), None)
    gamma0: float = checked(number(), 0.0)
    sigma_z: float = checked(number(0.0), 1.0)
    start: str | Normal | JointNormal = "stationary"
    dispersion: float | None = checked(optional(number(1e-6, 10.0)), None)
    upper: float | None = checked(optional(number(1e-50, 1e50)), None)
    offset: float | None = checked(optional(number()), None)

    def __post_init__(self) -> None:
        check_fields(self)
        links = [link for family, link in CODES if family == self.family]
        if self.link is None:
            object.__setattr__(self, "link", links[0])
        if self.link not in links:
            accepted = " or ".join(repr(link) for link in links)
            raise InvalidValue("LatentGLM", "link", self.link, f"{accepted}, for family = {self.family!r}")
        for name, (family, default) in OWN_FIELDS.items():
            value = getattr(self, name)
            if family == self.family and value is None:
                object.__setattr__(self, name, default)
            elif family != self.family and value is not None:
                accepted = f"no value for family = {self.family!r}; only {family!r} has it"
                raise InvalidValue("LatentGLM", name, value, accepted)
        try:
            _ = self.process
        except InvalidValue as error:
            raise InvalidValue("LatentGLM", error.name, error.value, error.accepted) from error

    @cached_property
    def process(self) -> LatentAR:
        """The latent process, as a `LatentAR` without reward noise whose means are the linear predictors."""
        return LatentAR(
            gammas=self.gammas,
            beta=self.beta,
            mu=self.mu,
            gamma0=self.gamma0,
            sigma_z=self.sigma_z,
            sigma_r=0.0,
            start=self.start,
        )

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.beta)

    @property
    def k(self) -> int:  # type: ignore[override]
        """Order of the latent process."""
        return len(self.gammas)

    @property
    def reward_family(self) -> RewardFamily:
        """The distribution of rewards, for kernels."""
        return RewardFamily(
            code=CODES[self.family, str(self.link)],
            dispersion=0.0 if self.dispersion is None else self.dispersion,
            upper=1.0 if self.upper is None else self.upper,
            offset=0.0 if self.offset is None else self.offset,
        )

    def latent(self) -> GLMState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return GLMState(base=self.process.latent(), means=np.zeros(self.arms), family=self.reward_family)

    def state_of(self, latent: Any) -> float:
        """Return z_t."""
        return self.process.state_of(latent.base)

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> Floats:
        """Return z_0 … z_{horizon−1} of one trial, the path that `compare` uses for the same seed and trial."""
        return self.process.path(horizon, seed, trial)

    def means(self, path: Any) -> Floats:
        """Return the mean rewards E[r(a) | z] along a path, (…, arms)."""
        eta = self.process.means(path)
        result = np.empty(eta.size)
        mean_rewards(self.reward_family, np.ravel(eta), result)
        return np.reshape(result, eta.shape)

    def optimal_arm(self, path: Any) -> NDArray[np.int64]:
        """Return the arm with the largest mean at each point of a path; of equal arms the lowest."""
        return np.argmax(self.means(path), axis=-1)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], owner: str = "") -> Self:
        """Return the world that `to_dict` wrote. Fields left out have their defaults."""
        return cls(**read_process_fields(cls, values, owner or cls.__name__))
