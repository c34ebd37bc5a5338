"""Files that are whole or absent: written beside their place, synced, and moved there in one step."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: str | Path, write: Callable[[Path], object], *, private: bool = False) -> Path:
    """Let `write` make a file under a temporary name, then move it to `path`; on any failure nothing is left behind.

    `private`: only the owner may read it (mode 0600), for data of people; otherwise the umask decides.
    """
    target = Path(path)
    with output_folder(target.parent):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        os.close(handle)
        draft = Path(name)
        try:
            write(draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(0o600 if private else 0o666 & ~mask)
            draft.replace(target)
            _sync_folder(target.parent)
        finally:
            draft.unlink(missing_ok=True)
    return target


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder now, so that an impossible one is refused before the work; if the work fails, remove it if empty.

    Folders above it that were made are removed too; a folder that was there before is never touched.
    """
    target = Path(path)
    made = [each for each in (target, *target.parents) if not each.exists()]
    target.mkdir(parents=True, exist_ok=True)
    try:
        yield target
    except BaseException:
        with suppress(OSError):  # not empty: what was finished stays
            for each in made:
                each.rmdir()
        raise


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
