"""Sizes of tests: small in every test run, large in `make torture`, which also stores the results."""

import json
import os
from pathlib import Path
from typing import Any, TypeVar

from larl._core.files import write_atomically

FOLDER = os.environ.get("LARL_RELIABILITY")  # for the results of tests at full length; without it, tests are short
Size = TypeVar("Size", int, float)


def scaled(short: Size, full: Size) -> Size:
    """Return the size of a test in a short run or at full length."""
    return full if FOLDER else short


def save(name: str, **results: Any) -> None:
    """Store results for docs/reliability.md, if the test runs at full length."""
    if FOLDER:
        write_atomically(Path(FOLDER) / f"{name}.json", lambda path: path.write_text(json.dumps(results, indent=1)))
