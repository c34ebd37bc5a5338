"""A limit for the size of a policy's State, which decides how long a decision takes and how much memory a unit needs.

The size is found without creating a large State. A State grows with the whole numbers in its spec and with the number
of arms. All of them are limited to a number that grows in small steps, until the State is too large or complete.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import exp, log
from typing import Any

from larl._core.validation import InvalidValue
from larl.policies import from_dict
from larl.policies._state_memory import format_bytes, limit_numbers, limited_size, whole_numbers

MAX_STATE = 10_000_000  # bytes
MAX_NUMBER = 2**53  # in a spec
GROWTH = 1.25  # of the limit of the numbers, from one State to the next
LARGE = 1e12  # bytes from which on a size is not estimated


def check_state_size(policy: Mapping[str, Any], arms: int, horizon: int | None, pooling: str) -> None:
    """Raise InvalidValue if a policy's State takes more than MAX_STATE bytes."""
    spec, rest = from_dict(dict(policy)), (horizon, pooling)
    numbers = whole_numbers(spec)
    for name, value in numbers.items():
        if value > MAX_NUMBER:
            raise InvalidValue("policy", name, value, f"a whole number up to {MAX_NUMBER}")
    limit, size = _measure(spec, arms, *rest)
    if size is None or size <= MAX_STATE:  # None: creating the agent says why
        return
    by_value = sorted((numbers | {"arms": arms}).items(), key=lambda item: -item[1])
    fitting = (_fitting(spec, arms, name, value, rest) for name, value in by_value)
    such_as = next((f", such as {each}" for each in fitting if each), "")
    accepted = (
        f"a policy whose State takes at most {format_bytes(MAX_STATE)}{such_as}; with {arms} arms, this one takes "
    )
    raise InvalidValue("study", "policy", dict(policy), accepted + _estimate(spec, arms, limit, size, rest))


@lru_cache(256)
def _measure(spec: Any, arms: int, horizon: int | None, pooling: str) -> tuple[int, int | None]:
    """Return the first limit of the numbers with which the State is too large or complete, and its bytes then."""
    largest, limit = max([arms, *whole_numbers(spec).values()]), 2
    while True:
        size = limited_size(limit_numbers(spec, limit), arms, limit, horizon, None, pooling)
        if limit >= largest or (size or 0) > MAX_STATE:
            return limit, size
        limit = min(max(int(limit * GROWTH), limit + 1), largest)


def _fitting(spec: Any, arms: int, name: str, value: int, rest: tuple[int | None, str]) -> str:
    """Return which values of one number fit if nothing else changes, "" if there are none."""
    low, high = 1, value  # the State fits with `low`, if with any, and not with `high`
    while high - low > max(1, low // 20):
        middle = min((low + high) // 2, 2 * low)
        changed = (spec, middle) if name == "arms" else (limit_numbers(spec, middle, name), arms)
        size = _measure(*changed, *rest)[1]
        low, high = (middle, high) if size is not None and size <= MAX_STATE else (low, middle)
    return f"{name} ≤ {low}" if low > 1 else ""


def _estimate(spec: Any, arms: int, limit: int, size: int, rest: tuple[int | None, str]) -> str:
    """Return the size of the complete State, extrapolated as a power of each number that exceeds `limit`."""
    exponent, more, (horizon, pooling) = log(size), int(limit * GROWTH) + 1, rest
    for name, value in (whole_numbers(spec) | {"arms": arms}).items():
        if value > limit:
            with_more = replace(limit_numbers(spec, limit), **({} if name == "arms" else _field(spec, name, more)))
            grown = limited_size(with_more, arms, more if name == "arms" else limit, horizon, None, pooling) or 0
            exponent += log(max(grown, size) / size) / log(min(more, value) / limit) * log(value / limit)
    return f"about {format_bytes(exp(exponent))}" if exponent < log(LARGE) else f"over {format_bytes(LARGE)}"


def _field(spec: Any, name: str, limit: int) -> dict[str, Any]:
    return {name: getattr(limit_numbers(spec, limit, name), name)}
