"""The policy contract: a spec that the user writes, a State, and functions that are compiled for that State.

`act(state, bits)` returns an arm and does not change the State. `update(state, arm, reward)` changes only the State.
Simulations need no more. Agents also use the probabilities of the choice (`action_probabilities`), a prediction for
each arm (`predict`), and an update for a step without a reward (`update_missing`). All are plain functions in the
module of their State; `register` (_registry.py) enters them in one table per function, by the type of the State. The
functions below are stubs: a call such as `act(state, bits)` looks the type of `state` up in the table, in a kernel at
compile time.

To find the implementation of a policy's `act`: go to the definition of its State, for example `LARLState` in larl.py.
The same module has the function `act`, and the arguments of `register` or `bind` there name it.
"""

import json
import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, dataclass_transform

from larl._core.compile import generic, has_implementation
from larl._core.html import html_fields
from larl._core.random import Bits
from larl._core.validation import check_fields, required
from larl.policies._probabilities import Floats, Mask, one_hot, uniform_probabilities

if TYPE_CHECKING:
    from larl.worlds.base import World


@dataclass_transform(field_specifiers=(required, field), frozen_default=True)
@dataclass(frozen=True)
class Policy:
    """Base class of all policies: an immutable, hashable specification that is validated at construction.

    A policy has no state. `init` returns the State of a trial; `larl.compare`, `larl.Agent` and `larl.Cohort` call it.
    CONTRIBUTING.md shows how to write a policy.

    Examples
    --------
    >>> import larl
    >>> policy = larl.LARL(s=5)
    >>> policy.to_dict()["s"]
    5
    >>> larl.policies.from_json(policy.to_json()) == policy
    True
    """

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        """Return the State before the first step of a trial.

        Parameters
        ----------
        arms : int, >= 2
            Number of arms.
        horizon : int, optional
            Number of steps, if it is known in advance.
        world : World, optional
            The world, for policies that use its true parameters.

        Returns
        -------
        NamedTuple
            The State, whose arrays `update` changes in place.

        Raises
        ------
        larl.InvalidValue
            If the policy needs a horizon or a world and does not get one that it can use.
        """
        raise TypeError(f"{type(self).__name__} must define init(arms, *, horizon, world)")

    def _repr_html_(self) -> str:
        return html_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and parameters as JSON types."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"policy": type(self).__name__} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def to_json(self) -> str:
        """Return the policy's name and parameters as one line of JSON."""
        return json.dumps(self.to_dict())


SHARED_FIELDS: dict[type, tuple[str, ...]] = {}  # fields of a State that the units of a cohort share if they pool


# Stub: the implementation is the function `act` in the module that defines the type of `state`.
@generic
def act(state: Any, bits: Bits) -> int:
    """Return the arm that the policy chooses, with random draws from `bits`; the State does not change."""
    raise TypeError("state must be the State of a registered policy")


# Stub: the implementation is the function `update` in the module that defines the type of `state`.
@generic
def update(state: Any, arm: int, reward: float) -> None:
    """Update the State with the reward of the arm that was played; time advances by one step."""
    raise TypeError("state must be the State of a registered policy")


# Default: a policy overrides it by the function `update_missing` in the module of its State.
@generic
def update_missing(state: Any, arm: int) -> None:
    """Update the State after a step without a reward, in which `arm` was played (−1: none).

    The default does nothing: the step is ignored.
    """


# Default: a policy overrides it by the function `predict` in the module of its State.
@generic
def predict(state: Any, arm: int) -> tuple[float, float]:
    """Return the predicted mean reward of `arm` at the next step, and the exploration bonus.

    Both are nan if the policy has no prediction. A bonus of ∞ means that the arm must be played first.
    """
    return math.nan, math.nan


# Default: a policy overrides it by the function `action_probabilities` in the module of its State.
@generic
def action_probabilities(state: Any, available: Mask, out: Floats) -> None:
    """Write the probability that `act` chooses each arm, if only the `available` arms exist, into `out`.

    The default gives probability 1 to the first arm with the largest mean + bonus of `predict`, and equal probabilities
    to all available arms if there is no prediction.
    """
    best, choice = -math.inf, -1
    for arm in range(out.size):
        if available[arm]:
            mean, bonus = predict(state, arm)
            bound = math.inf if bonus == math.inf else mean + bonus
            if bound > best:
                best, choice = bound, arm
    if choice < 0:
        uniform_probabilities(available, out)
    else:
        one_hot(choice, out)


# Default: a policy overrides it by the function `set_context` in the module of its State.
@generic
def set_context(state: Any, context: Floats) -> None:
    """Set the context of the next step; called before `act`, and again before `update` or `update_missing`."""


# Default: only dynamic_oracle.py overrides it.
@generic
def set_true_means(state: Any, means: Any) -> None:
    """Set the true mean rewards of this step; only `DynamicOracle` uses them."""


def has_action_probabilities(state: Any) -> bool:
    """Return whether the policy of a State defines its action probabilities, directly or by `predict`."""
    return any(has_implementation(function, type(state)) for function in (action_probabilities, predict))
