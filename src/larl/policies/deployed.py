"""A policy as it is used in a trial, for simulations: what `larl.Agent` does with the same settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from larl._core.validation import InvalidValue, instance, known_fields, required
from larl.policies._contract import Policy
from larl.policies._deployment import Deployment, Rules
from larl.policies.dynamic_oracle import DynamicOracle
from larl.policies.random import Random

if TYPE_CHECKING:
    from larl.worlds.base import World

KEYS = tuple(item.name for item in fields(Deployment))


@dataclass(frozen=True)
class Deployed(Deployment, Policy):
    """A policy as it is used in a trial, for `larl.compare` and study files.

    It decides as a `larl.Agent` with the same settings, bit for bit. Agents and cohorts take these settings themselves.

    Parameters
    ----------
    policy : Policy
        For example ``larl.LARL(s=5)``. Any policy except ``larl.DynamicOracle``.
    allocation : {"ucb", "best", "smooth"} or Allocation, default "ucb"
        How the probabilities of arms follow from the policy's posterior.
    min_probability : float or mapping from str to float, default 0.0
        Minimum probability of every arm, or of some arms; in a simulation, the arms have the names ``"0"``, ``"1"``, …
    update_every : int, >= 1, optional
        Number of decisions of a unit between two updates; by default it learns at every decision. A simulation has no
        calendar, so ``"night"`` is refused: give the number of decisions of a day.
    warm_up : int, >= 0, default 0
        Number of decisions with fixed probabilities.
    warm_up_probabilities : mapping from str to float, optional
        Probabilities of the warm-up; equal by default.

    Examples
    --------
    >>> import larl
    >>> policies = {"always": larl.LARL(s=1), "daily": larl.Deployed(larl.LARL(s=1), update_every=5, warm_up=20)}
    >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=100)
    >>> bool(result.summary()["mean"]["daily"] > result.summary()["mean"]["always"])
    True
    """

    policy: Policy = required(instance(Policy, "a policy, such as larl.LARL(s=5)"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.policy, Deployed | DynamicOracle):
            accepted = "a policy that is not deployed and does not need the true means"
            raise InvalidValue("Deployed", "policy", self.policy, accepted)
        if self.update_every == "night":
            accepted = "a number of decisions, such as that of a day: a simulation has no calendar"
            raise InvalidValue("Deployed", "update_every", self.update_every, accepted)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        """Return the State of the policy before the first step; simulations apply the rules (`deployment_of`)."""
        self.rules("Deployed", self.policy, [str(arm) for arm in range(arms)])
        return self.policy.init(arms, horizon=horizon, world=world)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and parameters, and the settings that are not the default, as JSON types.

        Without such settings it has the minimum probability, so that `from_dict` returns a `Deployed` policy.
        """
        least, given = self.minimum_to_json_type(), self.settings()
        return self.policy.to_dict() | given | ({"min_probability": least} if least or not given else {})


def deployment_of(policy: Policy | None, arms: int) -> tuple[Rules, int]:
    """Return the rules of a policy in a simulation, and the decisions between two updates; 0: it learns at each."""
    names = [str(arm) for arm in range(arms)]
    if not isinstance(policy, Deployed):
        return Deployment().rules("Deployed", Random(), names), 0
    every = policy.update_every
    return policy.rules("Deployed", policy.policy, names), every if isinstance(every, int) else 0


def deployed_from(kind: type[Policy], values: Mapping[str, Any], owner: str) -> Policy:
    """Return the policy of a class from its fields, a `Deployed` one if some of them are those of a deployment."""
    known = {item.name for item in fields(kind)}
    own = {key: value for key, value in values.items() if key in KEYS and key not in known}
    given = {key: value for key, value in values.items() if key != "policy" and key not in own}
    policy = kind(**known_fields(kind, given, owner or kind.__name__))
    try:
        return Deployed(policy, **own) if own else policy
    except InvalidValue as error:
        raise InvalidValue(owner or kind.__name__, error.name, error.value, error.accepted) from error
