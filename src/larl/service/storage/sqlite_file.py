"""The file of an SQLite storage: whose it is, which process serves it, and the last number that was stored in it."""

import contextlib
import os
import sqlite3
import sys
from pathlib import Path

OWN_TABLES = {"about", "journal", "tokens"}
LAST_WIDTH = 20  # characters of the last number: it is overwritten in place
_served: set[tuple[int, int]] = set()  # device and inode of the files that this process serves


class StorageError(OSError):
    """A storage that cannot be used, and the reason. Clients of the service are told the reason only."""

    def __init__(self, storage: object, reason: str) -> None:
        super().__init__(f"{storage}: {reason}")
        self.reason = reason


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its -wal and -shm files the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def require_own(path: Path, shown: str, seconds: float) -> None:
    """Raise StorageError unless the file is empty or a storage of larl. Nothing is written, not even the WAL mode."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=seconds)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise StorageError(shown, str(error)) from error
    if tables and not tables >= OWN_TABLES:
        other = min(tables - OWN_TABLES, default=min(tables))
        raise StorageError(shown, f"this is not a storage of larl: it has the table {other}; nothing was changed")


def refuse_served(path: Path) -> None:
    """Raise StorageError if this process serves the file. To open and close it would drop SQLite's own locks."""
    if _inode(path) in _served:
        raise _served_by(path, str(os.getpid()))


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


class ServerLock:
    """Makes this process the only server of an SQLite file, whatever the file is called.

    The lock file has the id of the process, for messages, and excludes servers of earlier versions. Hard links lead to
    the same file under another name, so the file itself is locked too. On Linux, flock(2) is independent of the locks
    of SQLite, which are POSIX locks; elsewhere it may not be.
    """

    def __init__(self, path: Path) -> None:
        self._handles: list[int] = []
        self._inode = _inode(path)
        try:
            handle = self._lock(path, Path(f"{path}.lock"))
            if sys.platform == "linux":
                self._lock(path, path)
        except BaseException:
            self._close()
            raise
        _served.add(self._inode)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)

    def _lock(self, path: Path, file: Path) -> int:
        import fcntl

        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._handles.append(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = "" if file == path else os.pread(handle, 32, 0).decode()
            raise _served_by(path, holder) from error
        return handle

    def _close(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()

    def release(self) -> None:
        """Release the lock, after all connections of SQLite were closed."""
        self._close()
        _served.discard(self._inode)


def _served_by(path: Path, holder: str) -> StorageError:
    serves = f"process {holder} serves this storage" if holder else "another process serves this file by another name"
    return StorageError(path, f"{serves}, and SQLite allows one; stop it, or use PostgreSQL")


class LastNumber:
    """The number of the last event, in a file beside the storage.

    It is written after each commit and not synced, so it is never ahead of the journal. If the journal is behind it,
    events were lost: the -wal file was removed, or an older file was put in place.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(last_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, seq: int) -> None:
        """Store a number."""
        with contextlib.suppress(OSError):  # the events are stored; a full disk must not make them fail
            os.pwrite(self._handle, f"{seq:{LAST_WIDTH}}\n".encode(), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def last_file(path: Path) -> Path:
    """Return the path of the file with the last number."""
    return Path(f"{path}.last")


def stored_last(path: Path) -> int:
    """Return the stored last number, 0 if there is none: a storage that was copied has no such file."""
    try:
        return int(last_file(path).read_bytes())
    except (FileNotFoundError, ValueError):
        return 0
