"""Convert results to JSON types."""

import math
from typing import Any

import numpy as np


def to_json_types(value: Any) -> Any:
    """Return a value with NumPy types replaced by JSON types; nan and infinity are None."""
    if isinstance(value, dict):
        return {str(key): to_json_types(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_types(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
