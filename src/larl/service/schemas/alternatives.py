"""Fields of requests that accept values of two types; errors are those of the type that the value has."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

ALTERNATIVES = ("(object)", "(text)", "(number)")  # parts of the place of an error, which users do not write


def _object_or_number(value: Any) -> str:
    return "(object)" if isinstance(value, dict) else "(number)"


def _object_or_text(value: Any) -> str:
    return "(object)" if isinstance(value, dict) else "(text)"


def _text_or_number(value: Any) -> str:
    return "(text)" if isinstance(value, str) else "(number)"


def _known_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Return an allocation; raise ValueError unless its values are text and numbers."""
    if not all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in values.values()):
        raise ValueError("an object with text and numbers")
    return values


Probability = Annotated[float, Field(allow_inf_nan=False, ge=0.0, le=1.0)]
Arm = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
Minimum = Annotated[
    Annotated[Probability, Tag("(number)")] | Annotated[dict[Arm, Probability], Tag("(object)")],
    Discriminator(_object_or_number),
]
Allocation = Annotated[
    Annotated[Literal["ucb", "best", "smooth"], Tag("(text)")]
    | Annotated[dict[str, Any], AfterValidator(_known_numbers), Tag("(object)")],
    Discriminator(_object_or_text),
]
Schedule = Annotated[
    Annotated[Annotated[int, Field(ge=1, le=10**9)], Tag("(number)")] | Annotated[Literal["night"], Tag("(text)")],
    Discriminator(_text_or_number),
]
