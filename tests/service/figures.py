"""How much is tried: little in every test run, much in `make torture`, which also keeps what came of it."""

import json
import os
from pathlib import Path
from typing import Any, TypeVar

from larl._core.files import write_atomically

FOLDER = os.environ.get("LARL_TORTURE")  # where figures are kept; without, tests are short
Amount = TypeVar("Amount", int, float)


def amount(short: Amount, full: Amount) -> Amount:
    return full if FOLDER else short


def keep(name: str, **figures: Any) -> None:
    """Keep figures for docs/reliability.md."""
    if FOLDER:
        write_atomically(Path(FOLDER) / f"{name}.json", lambda path: path.write_text(json.dumps(figures, indent=1)))
