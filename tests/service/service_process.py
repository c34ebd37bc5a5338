"""`larl serve` as a process for the duration of a block."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service.processes import LARL

STOP_LIMIT = 300.0  # seconds that a service has to end


@contextmanager
def serving(storage: str, *options: str, port: int = 0) -> Iterator[str]:
    """Serve a storage; yield the address. A policy may take as long as a busy machine needs."""
    arguments = ["serve", "--storage", storage, "--port", str(port), "--timeout", "60", *options]
    process = subprocess.Popen(
        [*LARL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", line := process.stdout.readline())
        assert found, f"the service did not start: it printed {line!r}"
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=STOP_LIMIT)


@contextmanager
def serving_folder(folder: Path, *options: str) -> Iterator[str]:
    """Serve the storage study.db of a folder; yield the address."""
    with serving(f"sqlite:///{folder / 'study.db'}", *options) as address:
        yield address
