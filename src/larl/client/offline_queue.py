"""Decisions that the host made while the service was unreachable; kept, optionally in a file, until it is back."""

import json
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue

OLD_KEYS = {"odds": "probabilities", "held": "decisions"}  # of files of earlier versions


class FallbackDecision(NamedTuple):
    """A decision that ``Client.fallback`` made because the service was unreachable.

    Attributes
    ----------
    study, unit : str
        Names of the study and the unit.
    key : str
        Key of the unanswered request. The service may have decided with this key.
    arm : str
        Name of the chosen arm.
    probabilities : dict of str to float
        Probability of each arm.
    made : str
        Time of the decision, ISO 8601 with offset.
    available, reason, context
        As in ``Client.decide``.
    refused : str or None
        Why the service does not accept the decision.
    """

    study: str
    unit: str
    key: str
    arm: str
    probabilities: dict[str, float]
    made: str
    available: list[str] | None = None
    reason: str | None = None
    context: list[float] | None = None
    refused: str | None = None

    def decision_request(self) -> dict[str, Any]:
        """Return the body of the request for a decision that was not answered."""
        names = ("unit", "key", "available", "reason", "context")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def ingest_request(self) -> dict[str, Any]:
        """Return the body of the request that reports the decision to the service."""
        names = ("unit", "key", "arm", "made", "probabilities", "context", "reason")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class OfflineQueue:
    """Fallback decisions that the service does not have yet, oldest first, and each study's fallback probabilities."""

    def __init__(self, path: str | Path | None) -> None:
        self._path, self._lock = None if path is None else Path(path), threading.Lock()
        self.probabilities: dict[str, dict[str, float]] = {}
        self.decisions: dict[str, FallbackDecision] = {}
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def set_probabilities(self, study: str, probabilities: Mapping[str, float]) -> None:
        """Store a study's fallback probabilities."""
        with self._lock:
            if self.probabilities.get(study) != probabilities:
                self.probabilities[study] = dict(probabilities)
                self._write()

    def add(self, decision: FallbackDecision) -> None:
        """Store a decision, or replace the one with the same key."""
        with self._lock:
            self.decisions[decision.key] = decision
            self._write()

    def remove(self, key: str) -> None:
        """Remove a decision that the service has."""
        with self._lock:
            if self.decisions.pop(key, None) is not None:
                self._write()

    def _write(self) -> None:
        if self._path is not None:
            decisions = [decision._asdict() for decision in self.decisions.values()]
            text = json.dumps({"probabilities": self.probabilities, "decisions": decisions})
            write_atomically(self._path, lambda draft: draft.write_text(text, encoding="utf-8"), private=True)

    def _read(self, path: Path) -> None:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            values = {OLD_KEYS.get(key, key): value for key, value in values.items()}
            self.probabilities = values["probabilities"]
            self.decisions = {each["key"]: FallbackDecision(**each) for each in values["decisions"]}
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise InvalidValue("Client", "pending", str(path), f"a file that a Client wrote ({error})") from error


def draw_arm(probabilities: Mapping[str, float], available: Sequence[str] | None) -> tuple[str, dict[str, float]]:
    """Return an available arm drawn from fallback probabilities, and the probability of each arm."""
    candidates = list(probabilities) if available is None else list(available)
    if not candidates or not set(candidates) <= set(probabilities):
        raise InvalidValue("fallback", "available", available, f"one or more of {', '.join(probabilities)}")
    weights = {arm: weight if arm in candidates else 0.0 for arm, weight in probabilities.items()}
    if sum(weights.values()) <= 0.0:
        weights = {arm: float(arm in candidates) for arm in probabilities}
    total = sum(weights.values())
    arm = random.SystemRandom().choices(list(weights), list(weights.values()))[0]
    return arm, {name: weight / total for name, weight in weights.items()}
