"""Faults of disks, processes and databases, in short; `make torture` has the full length."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.optional import require
from tests.service.torture import bit_flips, failover, io_errors, power_cuts, stops
from tests.service.torture.checks import Findings
from tests.service.torture.disk import Disk, can_compile, cut

pytestmark = pytest.mark.timing
needs_compiler = pytest.mark.skipif(not can_compile(), reason="no C compiler, or not Linux")


def _wrong(findings: Mapping[str, Findings]) -> list[str]:
    return [f"{name}: {found}" for name, found in findings.items() if not found.is_correct]


@needs_compiler
@pytest.mark.parametrize("images", [3, pytest.param(16, marks=pytest.mark.long)])
def test_power_cuts_lose_no_acknowledged_response(images: int, tmp_path: Path) -> None:
    endings = (signal.SIGTERM, signal.SIGKILL) if images > 3 else (signal.SIGKILL,)
    assert not _wrong(power_cuts.run(images=images, responses=40, seed=1, folder=tmp_path, endings=endings))


@needs_compiler
@pytest.mark.long
def test_power_cuts_find_losses_where_nothing_is_synced(tmp_path: Path) -> None:
    """The test of power cuts would see a missing sync."""
    found = power_cuts.run(images=4, responses=20, seed=1, folder=tmp_path, sync=False, endings=(signal.SIGKILL,))
    assert found["lost"].lost + found["lost"].corrupt > 0


@needs_compiler
@pytest.mark.parametrize(("faults", "images"), [(3, 1), pytest.param(9, 4, marks=pytest.mark.long)])
def test_failing_writes_and_syncs_lose_no_acknowledged_response(faults: int, images: int, tmp_path: Path) -> None:
    summary, found = io_errors.run(faults=faults, images=images, seed=1, folder=tmp_path)
    assert not _wrong({"journal": summary, **found})
    assert summary.failed_calls > 0


SNAPSHOT_BEFORE_A_FAILED_SYNC = """
import errno, sys
from pathlib import Path
from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import EventKind
from larl.service.storage.journal import Journal
from tests.service.torture.disk import SYNC, set_fault

journal = Journal(Database(sys.argv[1], write=True, create=True))

def append(key):
    with journal.transaction() as transaction:
        transaction.append(EventKind.STUDY, key, "", "{}", "{}")

append("first")
journal.save_snapshots([{"study": "first", "unit": "", "seq": 1, "made_by": "", "state": bytes(30_000)}])
set_fault(Path(sys.argv[2]), SYNC, errno.EIO, 1)
try:
    append("second")
except StorageError:
    append("third")
    print(journal.last_seq(), flush=True)
"""


@needs_compiler
def test_failed_sync_after_a_snapshot_loses_no_later_event(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    command = [sys.executable, "-c", SNAPSHOT_BEFORE_A_FAILED_SYNC, disk.storage, disk.environment["LARL_DISK_FAULT"]]
    done = subprocess.run(command, env=os.environ | disk.environment, capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
    changes = disk.changes()
    position = next(change.end for change in reversed(changes) if change.kind == "S")  # before the process ends
    for seed in range(10):
        image = tmp_path / f"image{seed}"
        cut(changes, position, "kept", random.Random(seed), image)
        with sqlite3.connect(image / "study.db") as connection:
            assert connection.execute("SELECT count(*) FROM journal").fetchone() == (2,), seed
        connection.close()


def test_damaged_files_are_reported_or_make_no_difference(tmp_path: Path) -> None:
    counts = bit_flips.run(flips=4, seed=1, folder=tmp_path)
    for kind, found in counts.items():
        assert not found["different"] + found["crashed"], (kind, found)


@pytest.mark.parametrize("what", [stops.SERVICE, pytest.param(stops.PEER, marks=pytest.mark.long)])
def test_frozen_process_loses_no_acknowledged_response(what: str, tmp_path: Path) -> None:
    if what == stops.PEER:
        require("postgres")
    [found] = stops.run_all(1, 1.0, 0, tmp_path, [what])
    assert found.is_correct, found


@pytest.mark.long
def test_failover_that_loses_rows_is_reported_and_replays(tmp_path: Path) -> None:
    require("postgres")
    found = failover.run(tmp_path, synchronous=False, responses=40)
    assert not list(failover.failures(found, synchronous=False))
