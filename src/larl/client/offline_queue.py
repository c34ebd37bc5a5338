"""Decisions that a host made itself while the service was away: kept, in a file if there is one, until it is back."""

import json
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue


class Fallback(NamedTuple):
    """A decision that the host made itself, and what it would have asked the service."""

    study: str
    unit: str
    key: str  # of the request that was not answered, if there was one: the service may have decided all the same
    arm: str
    probabilities: dict[str, float]
    made: str
    available: list[str] | None = None
    reason: str | None = None
    context: list[float] | None = None
    refused: str | None = None  # why the service does not take it in

    def asked(self) -> dict[str, Any]:
        """The request for a decision that it stands for."""
        names = ("unit", "key", "available", "reason", "context")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def said(self) -> dict[str, Any]:
        """As the service takes it in."""
        names = ("unit", "key", "arm", "made", "probabilities", "context", "reason")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Pending:
    """Fallbacks that the service does not know of yet, oldest first, and the probabilities that they are drawn by."""

    def __init__(self, path: str | Path | None) -> None:
        self._path, self._lock = None if path is None else Path(path), threading.Lock()
        self.odds: dict[str, dict[str, float]] = {}
        self.held: dict[str, Fallback] = {}
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def learn(self, study: str, odds: Mapping[str, float]) -> None:
        """Know a study's fallback probabilities."""
        with self._lock:
            if self.odds.get(study) != odds:
                self.odds[study] = dict(odds)
                self._write()

    def hold(self, fallback: Fallback) -> None:
        """Keep a decision until the service has it."""
        with self._lock:
            self.held[fallback.key] = fallback
            self._write()

    def drop(self, key: str) -> None:
        """The service has it."""
        with self._lock:
            if self.held.pop(key, None) is not None:
                self._write()

    def _write(self) -> None:
        if self._path is not None:
            words = {"odds": self.odds, "held": [fallback._asdict() for fallback in self.held.values()]}
            text = json.dumps(words)
            write_atomically(self._path, lambda draft: draft.write_text(text, encoding="utf-8"), private=True)

    def _read(self, path: Path) -> None:
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
            self.odds = words["odds"]
            self.held = {each["key"]: Fallback(**each) for each in words["held"]}
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise InvalidValue("Client", "pending", str(path), f"a file that a Client wrote ({error})") from error


def draw(odds: Mapping[str, float], available: Sequence[str] | None) -> tuple[str, dict[str, float]]:
    """An arm by these probabilities, among those available, and how likely each was."""
    open_arms = list(odds) if available is None else list(available)
    if not open_arms or not set(open_arms) <= set(odds):
        raise InvalidValue("fallback", "available", available, f"one or more of {', '.join(odds)}")
    shares = {arm: share if arm in open_arms else 0.0 for arm, share in odds.items()}
    if sum(shares.values()) <= 0.0:
        shares = {arm: float(arm in open_arms) for arm in odds}
    total = sum(shares.values())
    arm = random.SystemRandom().choices(list(shares), list(shares.values()))[0]
    return arm, {name: share / total for name, share in shares.items()}
