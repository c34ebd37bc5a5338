"""What is known of a study, and of a unit in it: each follows the rows of the journal that are about it."""

from dataclasses import dataclass, field
from typing import Any

from larl.service.journal import Row
from larl.service.minds import Mind
from larl.service.terms import Terms


@dataclass
class Study:
    """A study: its terms of now, and those before."""

    versions: list[Terms] = field(default_factory=list)
    closed: str | None = None
    seq: int = 0  # the last row that changed it
    mind: Mind | None = None  # of a cohort
    mind_seq: int = 0

    @property
    def terms(self) -> Terms:
        return self.versions[-1]

    def read(self, row: Row) -> None:
        """Follow a row that says what the study is."""
        if row.kind == "closed":
            self.closed = row.at
        else:
            self.versions.append(Terms.read(row.said["terms"]))
            self.mind, self.mind_seq = None, 0
        self.seq = max(self.seq, row.seq)


@dataclass
class Seat:
    """A unit: its number, how many decisions it has, which of them may still get a reward, and its mind."""

    unit: str
    number: int
    steps: int = 0
    pending: dict[int, str] = field(default_factory=dict)  # step: decision
    seq: int = 0
    version: int = 0
    mind: Mind | None = None
    size: int = 0

    def read(self, row: Row) -> None:
        """Follow a row of this unit."""
        if row.kind == "decision":
            self.decided(row.number or 0, row.ref or "", row.said["arm"])
        elif row.kind in ("reward", "default"):
            self.pending.pop(row.number or 0, None)
        self.seq = max(self.seq, row.seq)

    def decided(self, t: int, name: str, arm: str | None) -> None:
        """A decision was made."""
        self.steps = t + 1
        if arm is not None:
            self.pending[t] = name

    def due(self, patience: int) -> list[tuple[int, str]]:
        """Steps, and their decisions, whose reward has to be here before the next decision."""
        return [(t, name) for t, name in self.pending.items() if t <= self.steps - patience]


def info(study: Study) -> dict[str, Any]:
    """A study as its users see it."""
    terms = study.terms
    shown = terms.to_dict() | {"fallback": dict(zip(terms.arms, terms.fallback, strict=True))}
    shown["policy_version"] = shown.pop("version")
    return shown | {"closed": study.closed, "versions": [dict(each.policy) for each in study.versions]}
