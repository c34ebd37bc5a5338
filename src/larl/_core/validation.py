"""Checks of user input. An error names the field, the value and the accepted values in one sentence.

A check is a function of (owner, name, value) that returns the normalised value or raises InvalidValue.
"""

import itertools
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
# Types that `number`, `numbers`, `matrix` and `integers` accept, for type checkers. Fields keep tuples.
Number = float | np.floating[Any] | np.integer[Any]
Vector = Sequence[float] | NDArray[np.floating[Any] | np.integer[Any]]
Matrix = Sequence[Vector] | NDArray[np.floating[Any] | np.integer[Any]]
Integers = Sequence[int] | NDArray[np.integer[Any]]


class _ShortRepr(reprlib.Repr):
    """A repr of at most a few hundred characters, on one line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlong, self.maxstring, self.maxother = 4, 60, 300, 300
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = 12

    def repr1(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and len(shape) > 0 and getattr(x, "size", 0) != 1:
            return f"<{type(x).__name__} of shape {shape}>"
        return super().repr1(x.item() if isinstance(x, np.number | np.bool_) else x, level)


def short(value: object) -> str:
    """The repr of a value for a message, abbreviated if it is long."""
    text = " ".join(_ShortRepr().repr(value).split())
    return text if len(text) <= 400 else f"{text[:300]} … {text[-60:]}"


class InvalidValue(ValueError):
    """Raised for a value that larl cannot use.

    The message is ``owner: name = value is not usable; accepted: …``, with a long value abbreviated.

    Attributes
    ----------
    owner : str
        Function, class or file that got the value.
    name : str
        Name of the field.
    value : object
        The complete value.
    accepted : str
        Description of accepted values.

    Examples
    --------
    >>> import larl
    >>> larl.LARL(s=-1)
    Traceback (most recent call last):
    ...
    larl._core.validation.InvalidValue: LARL: s = -1 is not usable; accepted: a whole number ≥ 0
    """

    def __init__(self, owner: str, name: str, value: object, accepted: str) -> None:
        super().__init__(f"{owner}: {name} = {short(value)} is not usable; accepted: {accepted}")
        self.owner, self.name, self.value, self.accepted = owner, name, value, accepted

    def __reduce__(self) -> tuple[type, tuple[str, str, object, str]]:
        return type(self), (self.owner, self.name, self.value, self.accepted)


LARGEST = 1e100  # the product of three numbers up to this one is finite
WITHIN_LIMITS = f"a finite number from −{LARGEST:g} to {LARGEST:g}".replace("e+", "e")
Check = Callable[[str, str, Any], Any]


def integer(low: int, high: int | None = None) -> Check:
    """A whole number ≥ low (and ≤ high)."""

    def check(owner: str, name: str, value: Any) -> int:
        accepted = f"a whole number ≥ {low}" if high is None else f"a whole number from {low} to {high}"
        fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not fits or value < low or (high is not None and value > high):
            raise InvalidValue(owner, name, value, accepted)
        return int(value)

    return check


def number(
    low: float = -math.inf, high: float = math.inf, *, above: float = -math.inf, below: float = math.inf
) -> Check:
    """A finite number with low ≤ value ≤ high and above < value < below, at most `LARGEST` in size."""

    def check(owner: str, name: str, value: Any) -> float:
        # numpy compares in the type of the value, in which the limits may overflow
        plain = float(value) if isinstance(value, np.floating | np.integer) else value
        fits = isinstance(plain, int | float) and not isinstance(plain, bool)
        if fits and LARGEST < abs(plain) < math.inf:
            low_limit, high_limit = max(low, -LARGEST), min(high, LARGEST)
            raise InvalidValue(owner, name, value, _accepted_range(low_limit, high_limit, above, below))
        if not fits or not math.isfinite(plain) or not (low <= plain <= high and above < plain < below):
            raise InvalidValue(owner, name, value, _accepted_range(low, high, above, below))
        return float(plain)

    return check


def _accepted_range(low: float, high: float, above: float, below: float) -> str:
    """Return the description of the accepted numbers, with the finite limits."""
    limits = [(low, "≥"), (above, ">"), (high, "≤"), (below, "<")]
    return " and ".join(["a finite number", *(f"{sign} {limit:g}" for limit, sign in limits if math.isfinite(limit))])


def boolean() -> Check:
    """True or False."""

    def check(owner: str, name: str, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise InvalidValue(owner, name, value, "true or false")
        return bool(value)

    return check


def one_of(*options: str) -> Check:
    """One of the given strings."""

    def check(owner: str, name: str, value: Any) -> str:
        if not (isinstance(value, str) and value in options):
            raise InvalidValue(owner, name, value, " or ".join(repr(option) for option in options))
        return value

    return check


def instance(kind: type, accepted: str) -> Check:
    """An instance of `kind`. If the value is the class itself, the message says how to create an instance."""

    def check(owner: str, name: str, value: Any) -> Any:
        if isinstance(value, kind):
            return value
        is_class = isinstance(value, type) and issubclass(value, kind)
        raise InvalidValue(owner, name, value, accepted + (class_hint(value) if is_class else ""))

    return check


def class_hint(kind: type) -> str:
    """The end of a message about a class that was given in place of an instance."""
    return f"; {kind.__name__} is the class, write {kind.__name__}(…)"


def mapping(owner: str, name: str, value: Any) -> Mapping[str, Any]:
    """A mapping with string keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidValue(owner, name, value, "a mapping from names to values")
    return value


def path_like(owner: str, name: str, value: Any) -> Path:
    """A path, as a string or a Path."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidValue(owner, name, value, "a path, as a string or a pathlib.Path")
    return Path(value)


def array(owner: str, name: str, value: Any) -> NDArray[np.float64]:
    """An array of finite numbers, of any shape."""
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValue(owner, name, value, "an array of numbers") from error
    for index in np.argwhere(~np.isfinite(result))[:1].tolist():
        subscript = "".join(f"[{i}]" for i in index)
        raise InvalidValue(owner, f"{name}{subscript}", result[tuple(index)].item(), "a finite number")
    return result


def optional(check: Check) -> Check:
    """None, or what `check` accepts."""
    return lambda owner, name, value: None if value is None else check(owner, name, value)


def numbers(count: int = 1) -> Check:
    """A sequence of at least `count` finite numbers, kept as a tuple."""

    def check(owner: str, name: str, value: Any) -> tuple[float, ...]:
        accepted = f"a sequence of {count} or more finite numbers"
        if isinstance(value, str | bytes | set | Mapping) or not isinstance(value, Iterable):
            raise InvalidValue(owner, name, value, accepted)
        single = number()
        result = tuple(single(owner, f"{name}[{i}]", item) for i, item in enumerate(value))
        if len(result) < count:
            raise InvalidValue(owner, name, result, accepted)
        return result

    return check


def integers(low: int, high: int | None = None) -> Check:
    """A non-empty increasing sequence of whole numbers ≥ `low`, and ≤ `high` if given, kept as a tuple."""
    limits = f"≥ {low}" if high is None else f"from {low} to {high}"

    def check(owner: str, name: str, value: Any) -> tuple[int, ...]:
        accepted = f"one or more whole numbers {limits}, in rising order"
        if isinstance(value, str | bytes | set | Mapping) or not isinstance(value, Iterable):
            raise InvalidValue(owner, name, value, accepted)
        result = tuple(integer(low, high)(owner, f"{name}[{i}]", item) for i, item in enumerate(value))
        if not result or any(first >= second for first, second in itertools.pairwise(result)):
            raise InvalidValue(owner, name, result, accepted)
        return result

    return check


def matrix(rows: int | None = None, columns: int | None = None) -> Check:
    """Rows of finite numbers of equal length, kept as tuples, with `rows` rows and `columns` columns if given."""
    accepted = f"{rows or '1 or more'} rows of {columns or 'equally many'} finite numbers"

    def check(owner: str, name: str, value: Any) -> tuple[tuple[float, ...], ...]:
        if isinstance(value, str | bytes | set | Mapping) or not isinstance(value, Iterable):
            raise InvalidValue(owner, name, value, accepted)
        result = tuple(numbers()(owner, f"{name}[{i}]", row) for i, row in enumerate(value))
        width = columns or (len(result[0]) if result else 0)
        if not result or len(result) != (rows or len(result)) or any(len(row) != width for row in result):
            raise InvalidValue(owner, name, result, accepted)
        return result

    return check


def covariance(size: int) -> Check:
    """A symmetric size×size matrix with no negative eigenvalue, kept as tuples."""

    def check(owner: str, name: str, value: Any) -> tuple[tuple[float, ...], ...]:
        rows: tuple[tuple[float, ...], ...] = matrix(size, size)(owner, name, value)
        cov = np.array(rows)
        largest = float(np.abs(cov).max())
        if not np.allclose(cov, cov.T, atol=1e-8 * largest) or np.linalg.eigvalsh(cov).min() < -1e-12 * largest:
            raise InvalidValue(owner, name, rows, "a symmetric matrix with no negative eigenvalue")
        return rows

    return check


def interval() -> Check:
    """Two finite numbers (low, high) with low < high."""

    def check(owner: str, name: str, value: Any) -> tuple[float, float]:
        result: tuple[float, ...] = numbers(2)(owner, name, value)
        if len(result) != 2 or result[0] >= result[1]:
            raise InvalidValue(owner, name, result, "two finite numbers (low, high) with low < high")
        return result[0], result[1]

    return check


def checked(check: Check, default: T) -> T:
    """A dataclass field with a default; `check_fields` applies `check` to its value."""
    checked_field: Any = field(default=default, metadata={"check": check})
    return checked_field  # type: ignore[no-any-return]


def required(check: Check) -> Any:
    """A dataclass field without a default; `check_fields` applies `check` to its value."""
    return field(metadata={"check": check})


@dataclass_transform(field_specifiers=(required, field), frozen_default=True)
def spec(kind: type[T]) -> type[T]:
    """A frozen dataclass. Type checkers know that `required` fields have no default."""
    return dataclass(frozen=True)(kind)


def check_fields(spec: Any) -> None:
    """Check and normalise every field of a frozen dataclass that has a check; for `__post_init__`."""
    for item in fields(spec):
        if "check" in item.metadata:
            value = item.metadata["check"](type(spec).__name__, item.name, getattr(spec, item.name))
            object.__setattr__(spec, item.name, value)


def known_fields(kind: Any, values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return `values` as arguments of the dataclass `kind`; raise InvalidValue if a field is unknown or missing."""
    known = {item.name: item for item in fields(kind)}
    for name, value in values.items():
        if name not in known:
            raise InvalidValue(owner, name, value, f"only the fields {', '.join(known) or '(none)'}")
    for name, item in known.items():
        if name not in values and item.default is MISSING and item.default_factory is MISSING:
            raise InvalidValue(owner, name, None, f"a value: {kind.__name__} has no default for {name}")
    return dict(values)
