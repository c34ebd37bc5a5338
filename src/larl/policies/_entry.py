"""The entries of a policy: the functions of one type of State behind two addresses (_core/states.py).

A `Handle` stands for a State in functions that are compiled once for all policies. `act(handle, bits)` and the other
functions of the contract call the entries of the State: those that simulations need, and those that only agents need,
which are compiled when they are needed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from larl._core.compile import POLICY_NAMES, config, implement, inline, is_larl
from larl._core.entries import entry_address
from larl._core.random import Bits
from larl._core.states import bits_at, caller, floats_at, kind_of, loader, mask_at
from larl.policies._allocation import posterior
from larl.policies._contract import (
    act,
    action_probabilities,
    predict,
    set_context,
    set_true_means,
    update,
    update_missing,
)
from larl.policies._probabilities import Floats, Mask

ACT, UPDATE, UPDATE_MISSING, SET_CONTEXT, SET_TRUE_MEANS = 1, 2, 4, 8, 16  # UPDATE + ACT does one after the other
PROBABILITIES, PREDICT, POSTERIOR = range(3)
_int, _float = types.int64, types.float64
# entry(operation, words, arm, value, first, second): the last two are addresses of arrays; `arm` can be their length
SIGNATURE = _int(_int, _int, _int, _float, _int, _int)
call = caller(_int, *SIGNATURE.args)
_addresses: dict[Any, int] = {}  # by kind of the State, and the function that creates the entry


@intrinsic
def _whole_number(_: Any, value: Any) -> Any:
    if not isinstance(value, types.Integer | types.Boolean):
        raise TypingError(f"act returns {value}, not a whole number: that of an arm")
    return types.int64(types.int64), lambda _context, _builder, _signature, arguments: arguments[0]


whole_number: Any = int if config.DISABLE_JIT else _whole_number


def policy_entry(load: Callable[[int], Any]) -> Callable[..., int]:
    """Return the entry for the States that `load` returns."""

    def entry(operation: int, words: int, arm: int, value: float, first: int, second: int) -> int:
        if operation & UPDATE:
            update(load(words), arm, value)
        if operation & ACT:
            return whole_number(act(load(words), bits_at(first, 3)))
        if operation == UPDATE_MISSING:
            update_missing(load(words), arm)
        elif operation == SET_CONTEXT:
            set_context(load(words), floats_at(first, arm))
        elif operation == SET_TRUE_MEANS:
            set_true_means(load(words), floats_at(first, arm))
        return 0

    return entry


def reports_entry(load: Callable[[int], Any]) -> Callable[..., int]:
    """Return the entry of what agents report about the States that `load` returns."""

    def entry(operation: int, words: int, arm: int, value: float, first: int, second: int) -> int:
        if operation == PROBABILITIES:
            action_probabilities(load(words), mask_at(first, arm), floats_at(second, arm))
        elif operation == PREDICT:
            out = floats_at(first, 2)
            out[0], out[1] = predict(load(words), arm)
        elif operation == POSTERIOR:
            out = floats_at(first, 2)
            out[0], out[1] = posterior(load(words), arm)
        return 0

    return entry


def _address(state: Any, create: Callable[[Callable[[int], Any]], Callable[..., int]]) -> int:
    """Return the address of the entry of a State that a function creates; it is compiled if it is the first one."""
    kind = kind_of(state)
    if (kind, create) not in _addresses or not is_larl(type(state)):  # its functions can have been defined again
        name = POLICY_NAMES.get(type(state), type(state).__name__)
        _addresses[kind, create] = entry_address(name, create(loader(kind)), SIGNATURE, kind)
    return _addresses[kind, create]


class Handle(NamedTuple):
    """A State behind an address, in compiled functions."""

    entry: int
    reports: int  # 0: the functions that only agents need are not compiled
    words: int

    @classmethod
    def of(cls, state: Any, words: int, *, reports: bool = True) -> "Handle":
        """Return the handle of a State whose words are at an address, with or without what only agents need."""
        return cls(_address(state, policy_entry), _address(state, reports_entry) if reports else 0, words)


def _act(state: Handle, bits: Bits) -> int:
    return call(state.entry, (ACT, state.words, 0, 0.0, bits.ctypes.data, 0))


def _update(state: Handle, arm: int, reward: float) -> None:
    call(state.entry, (UPDATE, state.words, arm, reward, 0, 0))


@inline
def update_and_act(state: Handle, arm: int, reward: float, bits: Bits) -> int:
    """Learn a reward, then choose the arm of the next step; one call is quicker than two."""
    return call(state.entry, (UPDATE + ACT, state.words, arm, reward, bits.ctypes.data, 0))


def _update_missing(state: Handle, arm: int) -> None:
    call(state.entry, (UPDATE_MISSING, state.words, arm, 0.0, 0, 0))


def _set_context(state: Handle, context: Floats) -> None:
    call(state.entry, (SET_CONTEXT, state.words, context.size, 0.0, context.ctypes.data, 0))


def _action_probabilities(state: Handle, available: Mask, out: Floats) -> None:
    call(state.reports, (PROBABILITIES, state.words, out.size, 0.0, available.ctypes.data, out.ctypes.data))


@inline
def write_prediction(state: Handle, arm: int, address: int) -> None:
    """Write the predicted reward of an arm and the width of its interval to an address."""
    call(state.reports, (PREDICT, state.words, arm, 0.0, address, 0))


def _predict(state: Handle, arm: int) -> tuple[float, float]:
    out = np.empty(2)
    write_prediction(state, arm, out.ctypes.data)
    return out[0], out[1]


def _posterior(state: Handle, arm: int) -> tuple[float, float]:
    out = np.empty(2)
    call(state.reports, (POSTERIOR, state.words, arm, 0.0, out.ctypes.data, 0))
    return out[0], out[1]


def _set_true_means(state: Handle, means: Floats) -> None:
    call(state.entry, (SET_TRUE_MEANS, state.words, means.size, 0.0, means.ctypes.data, 0))


for _function, _implementation in (
    (act, _act),
    (update, _update),
    (update_missing, _update_missing),
    (set_context, _set_context),
    (action_probabilities, _action_probabilities),
    (predict, _predict),
    (posterior, _posterior),
    (set_true_means, _set_true_means),
):
    implement(cast(Any, _function), Handle, cast(Any, _implementation))
