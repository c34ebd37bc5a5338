"""A policy as it is used in a trial, for simulations: what `larl.Agent` does with the same settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from larl._core.compile import copy_fields, implement
from larl._core.random import Bits
from larl._core.validation import InvalidValue, instance, known_fields, required
from larl.policies._contract import Policy, act, choose_arm, has_nan, predict, set_context, update, update_missing
from larl.policies._deployment import Deployment, Rules, draw_arm
from larl.policies._frozen import FrozenState, assign_fields
from larl.policies._probabilities import Floats
from larl.policies._registry import bind
from larl.policies.dynamic_oracle import DynamicOracle

if TYPE_CHECKING:
    from larl.worlds.base import World

KEYS = tuple(item.name for item in fields(Deployment))


class DeployedState(NamedTuple):
    inner: Any  # the State of the policy, with all steps
    frozen: FrozenState  # that of the last update; unused if `update_every` is 0
    rules: Rules
    probabilities: Floats  # (arms,) of the last decision
    update_every: int


def deployed_act(state: DeployedState, bits: Bits) -> int:
    """Return the choice of the policy: minimum probabilities and schedule need the step, and are in `choose_arm`."""
    return act(state.inner, bits)


def deployed_update(state: DeployedState, arm: int, reward: float) -> None:
    update(state.inner, arm, reward)


def deployed_update_missing(state: DeployedState, arm: int) -> None:
    update_missing(state.inner, arm)


def deployed_predict(state: DeployedState, arm: int) -> tuple[float, float]:
    return predict(state.inner, arm)


def deployed_set_context(state: DeployedState, context: Floats) -> None:
    set_context(state.inner, context)
    set_context(state.frozen.state, context)


def deployed_has_nan(state: DeployedState) -> bool:
    return has_nan(state.inner) or has_nan(state.frozen.state)


def deployed_choose_arm(state: DeployedState, bits: Bits, exploration_key: np.uint64, t: int) -> int:
    """Learn if an update is due; return the arm of step t, as an agent would choose it."""
    rules, every, after = state.rules, state.update_every, t - state.rules.warm_up
    available = np.ones(rules.minimum.size, np.bool_)
    if every > 0 and after >= 0 and after % every == 0:
        assign_fields(state.frozen.state, state.inner)
    decides = state.frozen.state if every > 0 else state.inner
    chosen, _ = draw_arm(decides, rules, t, bits, exploration_key, available, state.probabilities)
    return chosen


implement(choose_arm, DeployedState, deployed_choose_arm)
bind(
    DeployedState,
    deployed_act,
    deployed_update,
    "Deployed",
    update_missing=deployed_update_missing,
    predict=deployed_predict,
    set_context=deployed_set_context,
    has_nan=deployed_has_nan,
)


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

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> DeployedState:
        rules = self.rules("Deployed", self.policy, [str(arm) for arm in range(arms)])
        state, every = self.policy.init(arms, horizon=horizon, world=world), self.update_every
        return DeployedState(
            inner=state,
            frozen=FrozenState(copy_fields(state)),
            rules=rules,
            probabilities=np.zeros(arms),
            update_every=every if isinstance(every, int) else 0,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and parameters, and the settings that are not the default, as JSON types.

        Without such settings it has the minimum probability, so that `from_dict` returns a `Deployed` policy.
        """
        least, given = self.minimum_to_json_type(), self.settings()
        return self.policy.to_dict() | given | ({"min_probability": least} if least or not given else {})


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
