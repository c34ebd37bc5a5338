"""The folder in which machine code is kept between processes.

numba's disk cache checks only the file of the outermost function. Kernels call policies that are defined in other
files, so a changed policy would silently keep its old machine code. The cache folder is therefore named after a digest
of all sources that can be compiled into a kernel: a changed source means a new folder.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba

from larl._core.numba_parts import PIPELINE

config: Any = numba.config
PACKAGE = Path(__file__).parents[1]
KERNEL_SOURCES = (
    "_core/compile.py",
    "_core/numba_parts.py",
    "_core/random.py",
    "worlds/**/*.py",
    "statespace/*.py",
    "theory/*.py",
    "policies/**/*.py",
    "live/kernels.py",
    "simulation/moments.py",
    "simulation/engine.py",
    "simulation/cohort_engine.py",
    "diagnosis/kernels.py",
)


def source_digest(patterns: Iterable[str] = KERNEL_SOURCES) -> str:
    """Sixteen hex digits that change whenever a source changes, by default one that can be compiled into a kernel."""
    digest = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """The folder for machine code: in $NUMBA_CACHE_DIR, else in the user's cache folder, else a temporary folder."""
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pipeline = "" if PIPELINE else "-plain"  # machine code of the two pipelines is not shared
    folder = base / "larl" / f"{source_digest()}{pipeline}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="larl-"))
