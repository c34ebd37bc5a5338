"""What every policy is: a spec the user writes, a State, and functions compiled for that State.

`act(state, bits)` chooses an arm and changes nothing; `update(state, arm, reward)` changes its own State alone. The lab
needs no more. Live, a policy also says with which probabilities it chooses among the arms that are open (`odds`), what
it expects of each (`outlook`), and what a step without a reward does to it (`skip`). All are written once, as plain
functions beside their State, and `register` ties them together. Inside a kernel the call `act(state, bits)` is resolved
by the type of `state`; in the interpreter by a look-up.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from larl._check import InvalidValue, check_fields, known_fields, required
from larl._compile import NAMES, fields_nan, generic, implement
from larl._words import Bits
from larl.policies._odds import Floats, Open, evenly, surely

if TYPE_CHECKING:
    from larl.world import World


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
def skip(state: Any, arm: int) -> None:
    """Tell the State that a step passed without a reward; `arm` was played, or none if it is −1.

    Nothing, unless the policy says otherwise: the step is as if it had not been.
    """


@generic
def outlook(state: Any, arm: int) -> tuple[float, float]:
    """What the policy expects of `arm` at the coming step, and the width it adds for what it does not know.

    nan where it has no opinion; a width of ∞ says that the arm is to be looked at first.
    """
    return math.nan, math.nan


@generic
def odds(state: Any, available: Open, out: Floats) -> None:
    """Into `out`: with which probability `act` chooses each arm, were only the `available` ones there.

    Unless the policy says otherwise, the lowest arm of the largest mean + width, any arm where it has no opinion.
    """
    best, choice = -math.inf, -1
    for arm in range(out.size):
        if available[arm]:
            mean, width = outlook(state, arm)
            bound = math.inf if width == math.inf else mean + width
            if bound > best:
                best, choice = bound, arm
    if choice < 0:
        evenly(available, out)
    else:
        surely(choice, out)


@generic
def present(state: Any, context: Floats) -> None:
    """Show the State the context of the coming step, before `act`, and again before `update` or `skip`."""


@generic
def has_nan(state: Any) -> bool:
    """Whether the State has nan in it: any of its arrays, unless the policy knows a quicker way to tell."""
    return fields_nan(state)


@generic
def reveal(state: Any, means: Any) -> None:
    """Show the State the true mean rewards of this step: only `DynamicOracle` looks."""


def register(
    state: type,
    act_: Callable[[Any, Bits], int],
    update_: Callable[[Any, int, float], None],
    shared: tuple[str, ...] = (),
    **others: Callable[..., Any],
) -> Callable[[type[P]], type[P]]:
    """A decorator that makes a spec known by its class name, and ties its State to its functions.

    `shared`: the fields of its State that the units of a cohort can have in common. `others`: `skip`, `outlook`,
    `odds`, `present` and `has_nan`, where what they do by default will not do.
    """

    def add(spec: type[P]) -> type[P]:
        if spec.__name__ in REGISTRY and REGISTRY[spec.__name__].__module__ != spec.__module__:
            raise TypeError(f"there is a policy called {spec.__name__} already")
        tie(state, act_, update_, spec.__name__, shared, **others)
        REGISTRY[spec.__name__] = spec
        return spec

    return add


def has_law(state: Any) -> bool:
    """Whether the policy of a State says with which probabilities it chooses."""
    return any(type(state) in function.__dict__["table"] for function in (odds, outlook))


LIVE: dict[str, Callable[..., Any]] = {
    "skip": skip,
    "outlook": outlook,
    "odds": odds,
    "present": present,
    "has_nan": has_nan,
}


def tie(
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
    NAMES.setdefault(state, name or state.__name__)


def from_dict(values: Mapping[str, Any], owner: str = "") -> Policy:
    """The spec that `Policy.to_dict` wrote (fields left out take their defaults). `owner` names it in messages."""
    name = values.get("policy")
    if not isinstance(name, str) or name not in REGISTRY:
        raise InvalidValue(owner or "policy", "policy", name, ", ".join(sorted(REGISTRY)))
    given = {key: value for key, value in values.items() if key != "policy"}
    return REGISTRY[name](**known_fields(REGISTRY[name], given, owner or name))


def from_json(text: str) -> Policy:
    """The spec that `Policy.to_json` wrote."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise InvalidValue("policy", "JSON", values, 'an object such as {"policy": "LARL", "s": 5}')
    return from_dict(values)
