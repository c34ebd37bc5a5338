"""What was sent for a unit, and so what the service must know of it: states of rewards by rules kept on their own.

Nothing here asks the service or shares its code: a ledger and the service can only agree if both are right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from larl.client import DecisionRecord, RewardRecord, ServiceDecision

FIRST = ("learnt", "repaired")  # how the first reward of a decision is taken: at once, or after further decisions


@dataclass
class Entry:
    """A decision, and what was sent for it."""

    answer: ServiceDecision
    state: str
    reward: float | None = None
    rows: list[tuple[float | None, bool]] = field(default_factory=list)  # values, and whether they were filled in


@dataclass
class Ledger:
    """All decisions of a unit, and where the service was found to disagree."""

    unit: str
    patience: int
    default: float | None
    pooled: bool = False
    entries: list[Entry] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def decided(self, answer: ServiceDecision) -> None:
        """A decision was made; before it, a reward that did not come in time was filled in."""
        due = len(self.entries) - self.patience
        if due >= 0 and self.entries[due].state == "pending":
            entry = self.entries[due]
            entry.state, entry.reward = "missing" if self.default is None else "defaulted", self.default
            entry.rows.append((self.default, True))
        self.expect(answer.t == len(self.entries), f"decision {answer.id} is step {answer.t}", len(self.entries))
        self.entries.append(Entry(answer, "unavailable" if answer.arm is None else "pending"))

    def sent(self, t: int, value: float, taken: str) -> None:
        """A reward was sent under a key of its own, and the service said how it was taken."""
        entry, age = self.entries[t], len(self.entries) - t
        expected = self._taken(entry, value, age)
        at_the_edge = self.pooled and taken == "late" and age == self.patience  # other units decide when that is
        right = taken in expected or taken == "stored" or at_the_edge
        self.expect(right, f"a reward of {entry.answer.id} was taken as {taken}", " or ".join(expected))
        entry.rows.append((value, False))
        if "late" in expected or at_the_edge:
            entry.state = entry.state if entry.state in ("observed", "corrected") else "late"
        elif expected != ("repeated",):
            corrected = expected == ("corrected",) and taken != "stored"
            entry.state, entry.reward = "corrected" if corrected else "observed", value

    def _taken(self, entry: Entry, value: float, age: int) -> tuple[str, ...]:
        """How a reward that comes now should be taken."""
        if age > self.patience:
            return ("late",)
        if not entry.rows:
            return FIRST
        return ("repeated",) if entry.reward == value else ("corrected",)

    def expect(self, right: bool, found: str, expected: object) -> None:
        """Note what is not as it should be."""
        if not right:
            self.differences.append(f"{self.unit}: {found}; it should be {expected}")

    def compare(self, decisions: Sequence[DecisionRecord], rewards: Iterable[RewardRecord]) -> None:
        """Find where the service's records of this unit are other than what was sent."""
        self.expect(len(decisions) == len(self.entries), f"{len(decisions)} decisions", len(self.entries))
        rows: dict[str, list[tuple[float | None, bool]]] = {}
        for reward in rewards:
            rows.setdefault(reward.decision, []).append((reward.value, reward.default))
        for entry, found in zip(self.entries, decisions, strict=False):
            name = f"decision {entry.answer.id}"
            kept = ServiceDecision(**{key: getattr(found, key) for key in ServiceDecision._fields})
            self.expect(kept == entry.answer, f"{name} is kept as {kept}", entry.answer)
            self.expect(found.state == entry.state, f"the reward of {name} is {found.state}", entry.state)
            self.expect(found.reward == entry.reward, f"the reward of {name} is {found.reward!r}", repr(entry.reward))
            listed = rows.pop(entry.answer.id, [])
            self.expect(listed == entry.rows, f"the rewards listed for {name} are {listed}", entry.rows)
        self.expect(not rows, f"rewards of other decisions are listed: {', '.join(rows)}", "none")
