"""A recorded disk: the log of a service's writes, and the files that a power cut could leave.

Contents are durable after a sync of the file, names after a sync of the folder. Each later change is kept or lost on
its own; a write can be kept in part, sector by sector. After a failed sync, the system may drop what was not written.
"""

import mmap
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SECTOR = 512  # bytes that a disk writes completely or not at all
HEADER = struct.Struct("<ciiq")
FAULT = struct.Struct("<iii")
WRITE, SYNC, TRUNCATE = 1, 2, 4  # calls that can fail
MODES = ("lost", "kept", "mixed")  # changes without a sync


class Change(NamedTuple):
    """A record of the log: C create, W write, T truncate, S sync, F failed sync, U unlink, R rename."""

    kind: str
    name: str
    offset: int
    data: bytes
    end: int  # position in the log


class Disk:
    """A folder whose changes are logged, in processes that are started with `environment`."""

    def __init__(self, folder: Path, *, sync: bool = True) -> None:
        self.folder, work = folder / "disk", folder / "recorder"
        self.folder.mkdir()
        work.mkdir()
        self.log, self._fault, library = work / "log", work / "fault", work / "disk.so"
        self._fault.write_bytes(FAULT.pack(0, 0, 0))
        source = Path(__file__).with_name("disk.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
        self.storage = f"sqlite:///{self.folder / 'study.db'}"
        self.environment = {
            "LD_PRELOAD": str(library),
            "LARL_DISK_FOLDER": f"{self.folder}/",
            "LARL_DISK_LOG": str(self.log),
            "LARL_DISK_FAULT": str(self._fault),
            **({} if sync else {"LARL_DISK_NO_SYNC": "1"}),
        }

    def position(self) -> int:
        """Return the current end of the log: what happened before is recorded before."""
        return self.log.stat().st_size

    def fail(self, calls: int, error: int, count: int) -> None:
        """Let the next `count` calls of a kind fail; -1: all. `calls` 0: none."""
        set_fault(self._fault, calls, error, count)

    def remaining(self) -> int:
        """Return how many calls are still to fail."""
        return int(FAULT.unpack(self._fault.read_bytes())[2])

    def changes(self) -> list[Change]:
        """Return the log."""
        return list(_parse(self.log.read_bytes()))


def set_fault(file: Path, calls: int, error: int, count: int) -> None:
    """`Disk.fail`, for a process that has only the file of faults."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), FAULT.size) as memory:
        memory[:] = FAULT.pack(calls, error, count)


def can_compile() -> bool:
    """Whether the library can be built and loaded here."""
    return shutil.which("cc") is not None and os.uname().sysname == "Linux"


def _parse(log: bytes) -> Iterator[Change]:
    at = 0
    while at < len(log):
        kind, name_length, data_length, offset = HEADER.unpack_from(log, at)
        at += HEADER.size
        name = log[at : at + name_length].decode()
        at += name_length
        yield Change(kind.decode(), name, offset, log[at : at + data_length], at + data_length)
        at += data_length


class _File:
    """The durable content of a file, and changes that were not synced."""

    def __init__(self) -> None:
        self.content, self.pending = bytearray(), list[Change]()

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.content, change)
        self.pending.clear()

    def fail_to_sync(self, generator: random.Random) -> None:
        """Drop some changes for good: the system takes them for written."""
        self.pending = [change for change in self.pending if generator.random() < 0.5]
        self.sync()

    def after_cut(self, mode: str, generator: random.Random) -> bytes:
        content = bytearray(self.content)
        for change in self.pending:
            fate = {"lost": 0.0, "kept": 1.0}.get(mode, generator.random())
            if fate > 0.6:
                _apply(content, change)
            elif fate > 0.3:
                _tear(content, change, generator)
        return bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    if change.kind == "T":
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
    else:
        content.extend(bytes(max(change.offset - len(content), 0)))
        content[change.offset : change.offset + len(change.data)] = change.data


def _tear(content: bytearray, change: Change, generator: random.Random) -> None:
    """Write some sectors of a change."""
    start = change.offset
    while start < (end := change.offset + len(change.data)):
        stop = min((start // SECTOR + 1) * SECTOR, end)
        if generator.random() < 0.5:
            part = change.data[start - change.offset : stop - change.offset]
            _apply(content, Change("W", change.name, start, part, 0))
        start = stop


def cut(changes: Sequence[Change], position: int, mode: str, generator: random.Random, folder: Path) -> None:
    """Write the files that a power cut at a position of the log could leave into a folder."""
    files: dict[str, _File] = {}
    durable: dict[str, _File] = {}  # names after a cut
    for change in changes:
        if change.end > position:
            break
        if change.kind == "C" and change.name in files:
            continue
        if change.kind in "CUR":
            _rename(files, change)
        elif change.name.endswith("/") and change.kind == "S":  # the folder
            durable = dict(files)
        elif change.kind in "SF" and change.name in files:
            files[change.name].sync() if change.kind == "S" else files[change.name].fail_to_sync(generator)
        elif change.kind in "WT":
            files.setdefault(change.name, _File()).pending.append(change)
    if mode == "kept" or (mode == "mixed" and generator.random() < 0.5):
        durable = dict(files)
    folder.mkdir()
    for name, file in durable.items():
        if not name.endswith("-shm"):  # shared memory: SQLite writes it anew
            (folder / Path(name).name).write_bytes(file.after_cut(mode, generator))


def _rename(files: dict[str, _File], change: Change) -> None:
    if change.kind == "C":
        files[change.name] = _File()
    elif change.kind == "U":
        files.pop(change.name, None)
    elif change.name in files:
        files[change.data.decode()] = files.pop(change.name)
