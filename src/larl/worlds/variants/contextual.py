"""A latent bandit with an observed context."""

import math
from typing import NamedTuple

import numpy as np

from larl._core.compile import implement
from larl._core.random import GOLDEN, normal_pair, random_bits
from larl._core.validation import InvalidValue, Matrix, checked, matrix, number, required, spec
from larl.worlds.kernels import Floats, Latent, advance, begin
from larl.worlds.variants.wrapped import WrappedWorld


class ContextState(NamedTuple):
    """A `Contextual` world inside a kernel."""

    base: Latent
    means: Floats
    sd: Floats
    context: Floats  # (p,) of this step
    eta: Floats  # (arms, p)
    memory: float


def context_begin(latent: ContextState, seed: int, trial: int) -> None:
    """Draw z_0 … z_{k−1} of the base world."""
    begin(latent.base, seed, trial)


def context_advance(latent: ContextState, key: np.uint64, t: int) -> float:
    """Move the base world to step t, draw the context x_t and add η_aᵀx_t to the means."""
    noise, draws = advance(latent.base, key, t), random_bits(key ^ GOLDEN, t)
    autocorrelation = latent.memory if t > 0 else 0.0
    for i in range(latent.context.size):
        draw, _ = normal_pair(draws, i)
        latent.context[i] = (
            autocorrelation * latent.context[i] + math.sqrt(1.0 - autocorrelation * autocorrelation) * draw
        )
    for arm in range(latent.means.size):
        latent.means[arm] = latent.base.means[arm]
        for i in range(latent.context.size):
            latent.means[arm] += latent.eta[arm, i] * latent.context[i]
    return noise


implement(begin, ContextState, context_begin)
implement(advance, ContextState, context_advance)


@spec
class Contextual(WrappedWorld):
    """A latent bandit with an observed context x_t: the mean reward is that of ``base`` plus η_aᵀx_t.

    The p components of x are independent N(0, 1) processes. The policy sees x_t before it acts.

    Parameters
    ----------
    base : LatentAR or LatentVAR
        The world without a context.
    eta : matrix of float, arms × p
        Effect of each context component on each arm's mean reward, in units of the reward.
    memory : float, in [0, 1), default 0.0
        Autocorrelation of each component from one step to the next.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.Contextual(larl.worlds.paper(1), eta=[[1.0], [-1.0]], memory=0.5)
    >>> larl.worlds.Simulator(world, seed=0, trial=0).context.round(2)
    array([0.39])
    """

    eta: Matrix = required(matrix())
    memory: float = checked(number(0.0, below=1.0), 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.eta) != self.base.arms:
            raise InvalidValue("Contextual", "eta", self.eta, f"{self.base.arms} rows, one for each arm")

    @property
    def context(self) -> int:
        """Number of context components, p."""
        return len(self.eta[0])

    def latent(self) -> ContextState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return ContextState(
            base=self.base.latent(),
            means=np.zeros(self.arms),
            sd=self.base.sd,
            context=np.zeros(self.context),
            eta=np.array(self.eta),
            memory=self.memory,
        )
