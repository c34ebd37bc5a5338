"""Blocks kept in a folder: one file a block, whole or absent, and a manifest that says what they are blocks of.

FOLDER/manifest.json      the study, the code that plays it, a token
FOLDER/blocks/KEY.npz     a block's arrays (numpy's own format), and `about`: its key, checksum and settings

A file's name is a digest of all that its bytes depend on. So two runs into one folder write the same bytes to the same
names, and a run that was killed leaves nothing that another has to clean up.
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
from larl.simulation.tasks import Arrays, Block

FORMAT = "larl store 1"
SHOWN = 5  # differences that a refusal lists


@dataclass(frozen=True)
class Store:
    """A folder of blocks. The token tells this folder from another of the same path on another machine."""

    folder: Path
    token: str

    @classmethod
    def open(cls, folder: Path, study: Mapping[str, Any]) -> "Store":
        """The store in a folder, begun if there is none. One that was begun for another study is refused."""
        path = folder / "manifest.json"
        wanted = json.loads(json.dumps({"format": FORMAT, "study": study}))
        if not path.exists():
            text = json.dumps(wanted | {"token": secrets.token_hex(8)}, indent=1, ensure_ascii=False) + "\n"
            write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))
        found = _manifest(path)
        _refuse_changes(folder, {key: found.get(key) for key in wanted}, wanted)
        return cls(folder.resolve(), str(found.get("token")))

    def is_here(self) -> bool:
        """Whether this process, perhaps on another machine, sees the same folder."""
        try:
            return str(_manifest(self.folder / "manifest.json").get("token")) == self.token
        except InvalidValue:
            return False

    def path(self, block: Block) -> Path:
        """The block's file."""
        return self.folder / "blocks" / f"{block.key()}.npz"

    def put(self, block: Block, arrays: Arrays) -> Path:
        """Keep a block."""
        about = {"key": block.key(), "sha256": _checksum(block.key(), arrays)} | block.about()
        members: dict[str, Any] = {"about": np.array(json.dumps(about, ensure_ascii=False))} | arrays
        return write_atomically(self.path(block), lambda draft: np.savez(draft, **members))

    def get(self, block: Block) -> Arrays | None:
        """A block's arrays, or None if its file is absent, cut short or altered."""
        try:
            with self.path(block).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                about = json.loads(str(arrays.pop("about")))
        except Exception:  # whatever a damaged file makes the reader raise
            return None
        return arrays if about.get("sha256") == _checksum(block.key(), arrays) else None


def _checksum(key: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(key.encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidValue("store", "manifest", str(path), f"a readable manifest ({error}), or a new folder") from error
    if not isinstance(found, dict):
        raise InvalidValue("store", "manifest", str(path), "a manifest that larl wrote, or a new folder")
    return found


def _refuse_changes(folder: Path, old: Any, new: Any) -> None:
    before, now = _flat(old), _flat(new)
    changed = [key for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)]
    if not changed:
        return
    first, *others = changed
    also = "".join(f"; also {key}: {before.get(key)!r} → {now.get(key)!r}" for key in others[: SHOWN - 1])
    more = f"; and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    accepted = f"{before.get(first)!r}, with which this store was begun, or another folder{also}{more}"
    raise InvalidValue(f"store {folder}", first, now.get(first), accepted)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    if not isinstance(value, Mapping):
        return {name: value}
    parts = [_flat(inner, f"{name}.{key}" if name else str(key)) for key, inner in value.items()]
    return {key: inner for part in parts for key, inner in part.items()}
