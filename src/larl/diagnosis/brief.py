"""Short representations of objects that hold arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

LONGEST = 60  # characters of one field


def brief(value: Any) -> str:
    """The class and its fields: arrays by type and shape, sequences and mappings by length, the rest as it is."""
    names = [each.name for each in fields(value)] if is_dataclass(value) else value._fields
    return f"{type(value).__name__}({', '.join(f'{name}={_field(getattr(value, name))}' for name in names)})"


def _field(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value) if not isinstance(value, Mapping | Sequence) or len(value) <= 10 else ""
    if text and len(text) <= LONGEST:
        return text
    if isinstance(value, str):
        return repr(value[: LONGEST - 1] + "…")
    if isinstance(value, Mapping | Sequence):
        return f"<{len(value):,} items>"
    return f"<{type(value).__name__}>"
