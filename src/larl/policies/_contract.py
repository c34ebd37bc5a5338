"""What a policy is: a spec that the user writes, a State, and functions that are compiled for that State.

`act(state, bits)` chooses an arm and does not change the State. `update(state, arm, reward)` changes the State only.
Simulations need no more. Live, a policy also has the probabilities of its choice (`action_probabilities`), a
prediction for each arm (`predict`), and an update for a step without a reward (`update_missing`). All are plain
functions next to their State, and `register` binds them to it. A call such as `act(state, bits)` is resolved by the
type of `state`: at compile time in a kernel, by a look-up in the interpreter.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from larl._core.compile import POLICY_NAMES, fields_nan, generic, has_implementation, implement
from larl._core.random import Bits
from larl._core.validation import InvalidValue, check_fields, known_fields, mapping, required
from larl.policies._probabilities import Floats, Mask, evenly, surely

if TYPE_CHECKING:
    from larl.worlds.base import World


@dataclass_transform(field_specifiers=(required, field), frozen_default=True)
@dataclass(frozen=True)
class Policy:
    """A policy as its user writes it: immutable, hashable, checked at construction, JSON in and out."""

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, arms: int, *, horizon: int | None = None, world: "World | None" = None) -> Any:
        """The State before the first step of a trial with `arms` arms."""
        raise TypeError(f"{type(self).__name__} has no init: it is not a policy")

    def to_dict(self) -> dict[str, Any]:
        """The spec as JSON types: the policy's name and its fields."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"policy": type(self).__name__} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def to_json(self) -> str:
        """The spec as one line of JSON."""
        return json.dumps(self.to_dict())


REGISTRY: dict[str, type[Policy]] = {}
SHARED: dict[type, tuple[str, ...]] = {}  # States of which the units of a cohort can share some fields (_pooling.py)
P = TypeVar("P", bound=Policy)


@generic
def act(state: Any, bits: Bits) -> int:
    """The arm that the policy with this State chooses, with draws from `bits`; the State stays as it is."""
    raise TypeError("not the State of a policy")


@generic
def update(state: Any, arm: int, reward: float) -> None:
    """Teach the State that `arm` was played and gave `reward`; time advances by one step."""
    raise TypeError("not the State of a policy")


@generic
def update_missing(state: Any, arm: int) -> None:
    """Tell the State that a step passed without a reward; `arm` was played, or none if it is −1.

    Nothing, unless the policy says otherwise: the step is as if it had not been.
    """


@generic
def predict(state: Any, arm: int) -> tuple[float, float]:
    """What the policy expects of `arm` at the coming step, and the width it adds for what it does not know.

    nan where it has no opinion; a width of ∞ says that the arm is to be looked at first.
    """
    return math.nan, math.nan


@generic
def action_probabilities(state: Any, available: Mask, out: Floats) -> None:
    """Into `out`: with which probability `act` chooses each arm, were only the `available` ones there.

    Unless the policy says otherwise, the lowest arm of the largest mean + width, any arm where it has no opinion.
    """
    best, choice = -math.inf, -1
    for arm in range(out.size):
        if available[arm]:
            mean, width = predict(state, arm)
            bound = math.inf if width == math.inf else mean + width
            if bound > best:
                best, choice = bound, arm
    if choice < 0:
        evenly(available, out)
    else:
        surely(choice, out)


@generic
def set_context(state: Any, context: Floats) -> None:
    """Show the State the context of the coming step, before `act`, and again before `update` or `update_missing`."""


@generic
def has_nan(state: Any) -> bool:
    """Whether the State has nan in it: any of its arrays, unless the policy knows a quicker way to tell."""
    return fields_nan(state)


@generic
def set_true_means(state: Any, means: Any) -> None:
    """Show the State the true mean rewards of this step: only `DynamicOracle` looks."""


def register(
    state: type,
    act_: Callable[[Any, Bits], int],
    update_: Callable[[Any, int, float], None],
    shared: tuple[str, ...] = (),
    **others: Callable[..., Any],
) -> Callable[[type[P]], type[P]]:
    """A decorator that makes a spec known by its class name, and ties its State to its functions.

    `shared`: the fields of its State that the units of a cohort can share. `others`: `update_missing`, `predict`,
    `action_probabilities`, `set_context` and `has_nan`, where the default is not right.
    """

    def add(spec: type[P]) -> type[P]:
        if spec.__name__ in REGISTRY and REGISTRY[spec.__name__].__module__ != spec.__module__:
            raise TypeError(f"there is a policy called {spec.__name__} already")
        bind(state, act_, update_, spec.__name__, shared, **others)
        REGISTRY[spec.__name__] = spec
        return spec

    return add


def has_law(state: Any) -> bool:
    """Whether the policy of a State says with which probabilities it chooses."""
    return any(has_implementation(function, type(state)) for function in (action_probabilities, predict))


LIVE: dict[str, Callable[..., Any]] = {
    "update_missing": update_missing,
    "predict": predict,
    "action_probabilities": action_probabilities,
    "set_context": set_context,
    "has_nan": has_nan,
}


def bind(
    state: type,
    act_: Callable[[Any, Bits], int],
    update_: Callable[[Any, int, float], None],
    name: str = "",
    shared: tuple[str, ...] = (),
    **others: Callable[..., Any],
) -> None:
    """Tie a State to its functions; a policy with one State is tied by `register`. `name` is its policy's."""
    if shared:
        SHARED[state] = shared
    implement(act, state, act_)
    implement(update, state, update_)
    for other, function in others.items():
        implement(LIVE[other], state, function)
    POLICY_NAMES.setdefault(state, name or state.__name__)


def from_dict(values: Mapping[str, Any], owner: str = "") -> Policy:
    """The spec that `Policy.to_dict` wrote (fields left out take their defaults). `owner` names it in messages."""
    name = mapping(owner or "policy", "fields", values).get("policy")
    if not isinstance(name, str) or name not in REGISTRY:
        raise InvalidValue(owner or "policy", "policy", name, ", ".join(sorted(REGISTRY)))
    given = {key: value for key, value in values.items() if key != "policy"}
    return REGISTRY[name](**known_fields(REGISTRY[name], given, owner or name))


def from_json(text: str) -> Policy:
    """The spec that `Policy.to_json` wrote."""
    try:
        values = json.loads(text)
    except (TypeError, ValueError):
        values = text
    if not isinstance(values, dict):
        raise InvalidValue("policy", "JSON", values, 'an object such as {"policy": "LARL", "s": 5}')
    return from_dict(values)
