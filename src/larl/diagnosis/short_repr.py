"""Short representations of objects that hold arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

MAX_CHARACTERS = 60  # of one field


def short_repr(value: Any) -> str:
    """Return the class and its fields: arrays as type and shape, long sequences and mappings as their length."""
    names = [each.name for each in fields(value)] if is_dataclass(value) else value._fields
    return f"{type(value).__name__}({', '.join(f'{name}={_field_repr(getattr(value, name))}' for name in names)})"


def _field_repr(value: Any) -> str:
    """Return the representation of one field."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value) if not isinstance(value, Mapping | Sequence) or len(value) <= 10 else ""
    if text and len(text) <= MAX_CHARACTERS:
        return text
    if isinstance(value, str):
        return repr(value[: MAX_CHARACTERS - 1] + "…")
    if isinstance(value, Mapping | Sequence):
        return f"<{len(value):,} items>"
    return f"<{type(value).__name__}>"
