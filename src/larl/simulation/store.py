"""A folder that keeps finished blocks, so that an interrupted study continues where it stopped.

FOLDER/manifest.json      the study, the versions of the code, a token
FOLDER/blocks/KEY.npz     the arrays of a block in numpy's format, and `about`: its key, checksum and settings

The name of a file is a digest of everything that its content depends on. So two runs can write to one folder at once:
they write identical files. A file is complete or absent, so a killed run leaves nothing to clean up.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue
from larl.simulation.tasks import Arrays, Block, fits_block

FORMAT = "larl store 1"
MAX_NAMED_CHANGES = 5  # differences that an error message lists


@dataclass(frozen=True)
class Store:
    """A folder of blocks. The token distinguishes it from a folder with the same path on another machine."""

    folder: Path
    token: str

    @classmethod
    def open(cls, folder: Path, study: Mapping[str, Any]) -> "Store":
        """Open the store in a folder, or create it. Raises InvalidValue if the store belongs to another study."""
        path = folder / "manifest.json"
        expected = json.loads(json.dumps({"format": FORMAT, "study": study}))
        if not path.exists():
            text = json.dumps(expected | {"token": secrets.token_hex(8)}, indent=1, ensure_ascii=False) + "\n"
            write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))
        manifest = _read_manifest(path)
        _check_unchanged(folder, {key: manifest.get(key) for key in expected}, expected)
        return cls(folder.resolve(), str(manifest.get("token")))

    def is_reachable(self) -> bool:
        """Whether this process, possibly on another machine, sees the same folder."""
        try:
            return str(_read_manifest(self.folder / "manifest.json").get("token")) == self.token
        except InvalidValue:
            return False

    def path(self, block: Block) -> Path:
        """Return the file of a block."""
        return self.folder / "blocks" / f"{block.key()}.npz"

    def put(self, block: Block, arrays: Arrays) -> Path:
        """Write a block's file and return its path."""
        about = {"key": block.key(), "sha256": _checksum(block.key(), arrays)} | block.to_dict()
        members: dict[str, Any] = {"about": np.array(json.dumps(about, ensure_ascii=False))} | arrays
        return write_atomically(self.path(block), lambda draft: np.savez(draft, **members))

    def get(self, block: Block) -> Arrays | None:
        """Return a block's arrays, or None if its file is absent, truncated, altered or not one of this block."""
        try:
            with self.path(block).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                about = json.loads(str(arrays.pop("about")))
        except Exception:  # a damaged file can make the reader raise anything
            return None
        is_intact = isinstance(about, dict) and about.get("sha256") == _checksum(block.key(), arrays)
        return arrays if is_intact and fits_block(block, arrays) else None


def _checksum(key: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(key.encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise InvalidValue("store", "manifest", str(path), f"a readable manifest ({error}), or a new folder") from error
    if not isinstance(manifest, dict):
        raise InvalidValue("store", "manifest", str(path), "a manifest that larl wrote, or a new folder")
    return manifest


def _check_unchanged(folder: Path, old: Any, new: Any) -> None:
    """Raise InvalidValue, with the settings that differ, unless the store was created for this study."""
    before, now = _flatten(old), _flatten(new)
    changed = [key for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)]
    if not changed:
        return
    first, *others = changed
    also = "".join(f"; also {key}: {before.get(key)!r} → {now.get(key)!r}" for key in others[: MAX_NAMED_CHANGES - 1])
    more = f"; and {len(changed) - MAX_NAMED_CHANGES} more" if len(changed) > MAX_NAMED_CHANGES else ""
    accepted = f"{before.get(first)!r}, with which this store was created, or another folder{also}{more}"
    raise InvalidValue(f"store {folder}", first, now.get(first), accepted)


def _flatten(value: Any, name: str = "") -> dict[str, Any]:
    """Return nested tables as one table with dotted names."""
    if not isinstance(value, Mapping):
        return {name: value}
    parts = [_flatten(inner, f"{name}.{key}" if name else str(key)) for key, inner in value.items()]
    return {key: inner for part in parts for key, inner in part.items()}
