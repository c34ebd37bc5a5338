"""Atomic writes: a file is written under a temporary name, synced, and renamed."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: str | Path, write: Callable[[Path], object], *, private: bool = False) -> Path:
    """Call `write` with a temporary path, then rename the file to `path`; a failure leaves nothing behind.

    `private`: only the owner can read the file (mode 0600), for personal data; otherwise the umask decides.
    """
    target = Path(path)
    with output_folder(target.parent):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o600 if private else 0o666 & ~mask)
            temporary.replace(target)
            _sync_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    return target


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Create a folder before the work starts, so that an impossible path fails early; remove it if the work fails.

    Only empty folders that were created here are removed, with their created parents.
    """
    target = Path(path)
    created = [each for each in (target, *target.parents) if not each.exists()]
    target.mkdir(parents=True, exist_ok=True)
    try:
        yield target
    except BaseException:
        with suppress(OSError):  # not empty: finished files stay
            for each in created:
                each.rmdir()
        raise


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new name in it survives a power cut (POSIX only)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
