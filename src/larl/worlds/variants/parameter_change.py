"""A latent bandit whose parameters change once, at a known step."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import assign, implement
from larl._core.validation import InvalidValue, checked, instance, integer, required, spec
from larl.worlds.kernels import Floats, Latent, advance, begin
from larl.worlds.latent_ar import LatentAR
from larl.worlds.variants.wrapped import WrappedWorld


class ChangeState(NamedTuple):
    """A `ParameterChange` world inside a kernel."""

    base: Latent
    later: Latent
    means: Floats
    sd: Floats
    time: NDArray[np.int64]  # (1,) the current step
    at: int


def change_begin(latent: ChangeState, seed: int, trial: int) -> None:
    """Draw the start of the world before the change."""
    begin(latent.base, seed, trial)


def change_advance(latent: ChangeState, key: np.uint64, t: int) -> float:
    """Move the world that holds at step t; at the change the new one continues from the last states."""
    latent.time[0] = t
    if t < latent.at:
        noise = advance(latent.base, key, t)
        assign(latent.means, latent.base.means)
        return noise
    if t == latent.at:
        for i in range(min(latent.base.recent.size, latent.later.recent.size)):
            latent.later.recent[i] = latent.base.recent[i]
        assign(latent.sd, latent.later.sd)
    noise = advance(latent.later, key, t)
    assign(latent.means, latent.later.means)
    return noise


implement(begin, ChangeState, change_begin)
implement(advance, ChangeState, change_advance)


@spec
class ParameterChange(WrappedWorld):
    """A latent AR bandit that becomes another one at step `at`; the latent state continues from its last values.

    Parameters
    ----------
    base : LatentAR
        The world before the change.
    later : LatentAR
        The world from step `at` on, with the same number of arms and an order of at most `at`.
    at : int, >= 1, default 100
        The first step of the later world.

    Examples
    --------
    >>> import larl
    >>> before = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0], start="stationary")
    >>> after = larl.LatentAR(gammas=[0.9], beta=[1, -1], mu=[0, 0], start="stationary")
    >>> larl.worlds.ParameterChange(before, later=after, at=50).arms
    2
    """

    later: LatentAR = required(instance(LatentAR, "a larl.LatentAR"))
    at: int = checked(integer(1), 100)

    def __post_init__(self) -> None:
        super().__post_init__()
        instance(LatentAR, "a larl.LatentAR")("ParameterChange", "base", self.base)
        if self.later.arms != self.base.arms or self.later.k > self.at:
            accepted = f"a world with {self.base.arms} arms and an order of at most {self.at}"
            raise InvalidValue("ParameterChange", "later", self.later, accepted)

    def state_of(self, latent: Any) -> float:
        """Return z of the current step."""
        return float((latent.base if latent.time[0] < self.at else latent.later).recent[0])

    def latent(self) -> ChangeState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        later = replace(self.later, start="stationary").latent()
        return ChangeState(
            self.base.latent(), later, np.zeros(self.arms), self.base.sd, np.zeros(1, dtype=np.int64), self.at
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the world as JSON types. `larl.worlds.from_dict` reads them."""
        return super().to_dict() | {"later": self.later.to_dict()}
