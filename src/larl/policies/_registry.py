"""The registry of policies: which class has which name, and which functions belong to which State."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from larl._core.compile import POLICY_NAMES, implement
from larl._core.random import Bits
from larl._core.states import CHECKED
from larl._core.validation import InvalidValue, mapping
from larl.policies._bounds import BOUNDS, Bounds
from larl.policies._contract import (
    SHARED_FIELDS,
    Policy,
    act,
    action_probabilities,
    predict,
    set_context,
    update,
    update_missing,
)

REGISTRY: dict[str, type[Policy]] = {}
P = TypeVar("P", bound=Policy)
OPTIONAL_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "update_missing": update_missing,
    "predict": predict,
    "action_probabilities": action_probabilities,
    "set_context": set_context,
}


def register(
    state: type,
    act_: Callable[[Any, Bits], int],
    update_: Callable[[Any, int, float], None],
    shared: tuple[str, ...] = (),
    bounds: Bounds | None = None,
    checked: tuple[str, ...] | None = None,
    **others: Callable[..., Any],
) -> Callable[[type[P]], type[P]]:
    """Return a class decorator that registers a policy by its class name and binds its State to its functions.

    Parameters
    ----------
    state : type
        NamedTuple class of the policy's State.
    act_ : callable
        ``act(state, bits) -> int``, the arm.
    update_ : callable
        ``update(state, arm, reward) -> None``, which changes arrays of the State in place.
    shared : tuple of str, default ()
        Fields of the State that the units of a cohort can share.
    bounds : callable, optional
        ``bounds(initial, state) -> mapping``: the least and the largest value of arrays of whole numbers in the State,
        by the path of the field. Files with other values are refused. Without it, whole numbers in files are not
        checked before compiled functions use them.
    checked : tuple of str, optional
        Fields of the State in which nan shows, whatever its cause; by default all fields are searched for it.
    **others : callable
        Any of ``update_missing``, ``predict``, ``action_probabilities`` and ``set_context`` for which the default is
        not right.

    Returns
    -------
    callable
        The decorator, which returns the class.

    Raises
    ------
    larl.InvalidValue
        If ``others`` has another name.
    TypeError
        If another module has registered a policy of the same name, or the State is already bound to other functions.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import NamedTuple
    >>> import larl
    >>> from larl.policies import Policy, register
    >>> class FirstState(NamedTuple):
    ...     arms: int
    >>> def act(state, bits):
    ...     return 0
    >>> def update(state, arm, reward):
    ...     pass
    >>> @register(FirstState, act, update)
    ... @dataclass(frozen=True)
    ... class First(Policy):
    ...     def init(self, arms, **_):
    ...         return FirstState(arms)
    >>> First().init(2)
    FirstState(arms=2)
    >>> _ = larl.policies.REGISTRY.pop("First")
    """
    _check_names("register", others)

    def decorate(spec: type[P]) -> type[P]:
        if spec.__name__ in REGISTRY and REGISTRY[spec.__name__].__module__ != spec.__module__:
            raise TypeError(
                f"a policy named {spec.__name__} is already registered by {REGISTRY[spec.__name__].__module__}"
            )
        bind(state, act_, update_, spec.__name__, shared, bounds, checked, **others)
        REGISTRY[spec.__name__] = spec
        return spec

    return decorate


def bind(
    state: type,
    act_: Callable[[Any, Bits], int],
    update_: Callable[[Any, int, float], None],
    name: str = "",
    shared: tuple[str, ...] = (),
    bounds: Bounds | None = None,
    checked: tuple[str, ...] | None = None,
    **others: Callable[..., Any],
) -> None:
    """Bind a State to its functions, for a policy that has several States; `register` binds the first.

    Parameters
    ----------
    state : type
        NamedTuple class of the State.
    act_, update_, shared, bounds, checked, **others
        As for `register`.
    name : str, default ""
        Name of the policy, for messages; by default the State's name.

    Raises
    ------
    larl.InvalidValue
        If ``others`` has another name.
    TypeError
        If the State is already bound to other functions.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from larl.policies import bind
    >>> class FixedState(NamedTuple):
    ...     arm: int
    >>> def act(state, bits):
    ...     return state.arm
    >>> def update(state, arm, reward):
    ...     pass
    >>> bind(FixedState, act, update, "Fixed")
    """
    _check_names("bind", others)
    if shared:
        SHARED_FIELDS[state] = shared
    if bounds is not None:
        BOUNDS[state] = bounds
    if checked is not None:
        CHECKED[state] = checked
    implement(act, state, act_)
    implement(update, state, update_)
    for other, function in others.items():
        implement(OPTIONAL_FUNCTIONS[other], state, function)
    POLICY_NAMES.setdefault(state, name or state.__name__)


def _check_names(owner: str, others: Mapping[str, Callable[..., Any]]) -> None:
    """Raise InvalidValue unless every name is one of the optional functions."""
    for name, function in others.items():
        if name not in OPTIONAL_FUNCTIONS:
            raise InvalidValue(owner, name, function, f"only the functions {', '.join(OPTIONAL_FUNCTIONS)}")


def from_dict(values: Mapping[str, Any], owner: str = "") -> Policy:
    """Return the policy that `Policy.to_dict` described.

    Parameters
    ----------
    values : mapping
        ``"policy"``: the policy's name. Other keys: its parameters; missing ones take their defaults.
    owner : str, default ""
        What the mapping belongs to, for error messages.

    Returns
    -------
    Policy

    Raises
    ------
    larl.InvalidValue
        If the name is unknown, or a parameter is missing, unknown or out of range.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_dict({"policy": "UCB", "alpha": 2.0})
    UCB(alpha=2.0, ridge=1.0, standardise=False)
    """
    from larl.policies.deployed import deployed_from  # a `Deployed` policy has the fields of the policy and its own

    name = mapping(owner or "policy", "fields", values).get("policy")
    if not isinstance(name, str) or name not in REGISTRY:
        raise InvalidValue(owner or "policy", "policy", name, ", ".join(sorted(REGISTRY)))
    return deployed_from(REGISTRY[name], values, owner)


def from_json(text: str) -> Policy:
    """Return the policy that `Policy.to_json` described.

    Parameters
    ----------
    text : str
        A JSON object such as ``{"policy": "LARL", "s": 5}``.

    Returns
    -------
    Policy

    Raises
    ------
    larl.InvalidValue
        If the text is not a JSON object, or for the reasons of `from_dict`.

    Examples
    --------
    >>> import larl
    >>> larl.policies.from_json('{"policy": "RoundRobin"}')
    RoundRobin()
    """
    try:
        values = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        values = text
    if not isinstance(values, dict):
        raise InvalidValue("policy", "JSON", values, 'an object such as {"policy": "LARL", "s": 5}')
    return from_dict(values)
