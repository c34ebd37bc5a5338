"""A population of units: each trial is played in the world of one of its members."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np

from larl._core.compile import assign, implement
from larl._core.states import copy_state, share_fields
from larl._core.validation import InvalidValue, known_fields, spec
from larl.worlds.base import LinearGaussianWorld, World
from larl.worlds.kernels import Floats, Latent, advance, begin

PARAMETERS = ("gammas", "gamma0", "factor", "mu", "beta", "sd", "start_mean", "start_factor")


class PopulationState(NamedTuple):
    """A `Population` inside a kernel. The parameters of all members have the member as their first axis."""

    base: Latent  # with the parameters of this trial
    means: Floats
    sd: Floats
    gammas: Floats
    gamma0: Floats
    factor: Floats
    mu: Floats
    beta: Floats
    member_sd: Floats
    start_mean: Floats
    start_factor: Floats


share_fields(PopulationState, ("gammas", "gamma0", "factor", "mu", "beta", "member_sd", "start_mean", "start_factor"))


def population_begin(latent: PopulationState, seed: int, trial: int) -> None:
    """Take the parameters of this trial's member and draw z_0 … z_{k−1}."""
    base, member = latent.base, trial % latent.mu.shape[0]
    for i in range(base.gammas.shape[0]):
        assign(base.gammas[i], latent.gammas[member, i])
        assign(base.factor[i], latent.factor[member, i])
    for i in range(base.start_factor.shape[0]):
        assign(base.start_factor[i], latent.start_factor[member, i])
    for arm in range(base.mu.size):
        assign(base.beta[arm], latent.beta[member, arm])
    assign(base.gamma0, latent.gamma0[member])
    assign(base.mu, latent.mu[member])
    assign(base.sd, latent.member_sd[member])
    assign(latent.sd, latent.member_sd[member])
    assign(base.start_mean, latent.start_mean[member])
    begin(base, seed, trial)


def population_advance(latent: PopulationState, key: np.uint64, t: int) -> float:
    """Move the member's world to step t."""
    noise = advance(latent.base, key, t)
    assign(latent.means, latent.base.means)
    return noise


implement(begin, PopulationState, population_begin)
implement(advance, PopulationState, population_advance)


@spec
class Population(World):
    """Units that differ: trial i is played in the world of member i mod n.

    Every unit of a cohort is a trial: unit u of cohort c, of U units each, is member (c·U + u) mod n. With as many
    members as a comparison has units in all its cohorts, every unit has a world of its own; with two members, every
    second unit belongs to the same group.

    Parameters
    ----------
    members : sequence of LatentAR or LatentVAR
        The worlds, with the same number of arms, the same order k and the same number of components. A smaller
        order can be written with coefficients 0. `larl.worlds.random_population` draws members around a world.

    Raises
    ------
    InvalidValue
        If there is no member, or members differ in arms, order or components.

    Examples
    --------
    >>> import larl
    >>> calm, changeable = (larl.LatentAR(gammas=(g,), beta=(-1, 1), mu=(0, 0)) for g in (0.9, 0.2))
    >>> world = larl.worlds.Population([calm, changeable])
    >>> world.arms, world.k, len(world.members)
    (2, 1, 2)
    """

    members: Sequence[LinearGaussianWorld]

    def __post_init__(self) -> None:
        members = tuple(self.members) if isinstance(self.members, list | tuple) else ()
        if not members or not all(isinstance(member, LinearGaussianWorld) for member in members):
            raise InvalidValue("Population", "members", self.members, "one or more larl.LatentAR or larl.LatentVAR")
        first = members[0]
        for i, member in enumerate(members):
            if (member.arms, member.k, member.m) != (first.arms, first.k, first.m):
                accepted = f"a world with {first.arms} arms, k = {first.k} and m = {first.m}, as the first member"
                raise InvalidValue("Population", f"members[{i}]", member, accepted)
        object.__setattr__(self, "members", members)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return self.members[0].arms

    @property
    def k(self) -> int:  # type: ignore[override]
        """Order of the latent process."""
        return self.members[0].k

    def latent(self) -> PopulationState:
        """Return the State of the world before a trial: the parameters of all members, for kernels."""
        latents = [member.latent() for member in self.members]
        stacked = {name: np.stack([getattr(each, name) for each in latents]) for name in PARAMETERS}
        member_sd = stacked.pop("sd")
        return PopulationState(
            base=copy_state(latents[0]),
            means=np.zeros(self.arms),
            sd=np.zeros(self.arms),
            member_sd=member_sd,
            **stacked,
        )

    def state_of(self, latent: Any) -> Any:
        """Return the latent state of the current step."""
        return self.members[0].state_of(latent.base)

    def to_dict(self) -> dict[str, Any]:
        """Return the world as JSON types. `larl.worlds.from_dict` reads them."""
        return {"world": "Population", "members": [member.to_dict() for member in self.members]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], owner: str = "") -> Self:
        """Return the world that `to_dict` wrote."""
        from larl.worlds.variants import from_dict

        owner = owner or "Population"
        given = known_fields(cls, {key: value for key, value in values.items() if key != "world"}, owner)
        members = given.get("members")
        if not isinstance(members, list | tuple):
            raise InvalidValue(owner, "members", members, "a list of worlds")
        read = [from_dict(each, f"{owner}.members[{i}]") for i, each in enumerate(members)]
        return cls(cast(Any, read))  # __post_init__ checks the classes
