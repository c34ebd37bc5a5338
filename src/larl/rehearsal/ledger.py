"""The ledger of a unit: what was sent, and therefore what the service must have recorded.

The expected states of rewards are computed here independently of the service's code: ledger and service agree only if
both are right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from larl.client import DecisionRecord, RewardRecord, ServiceDecision

FIRST_REWARD = ("learnt", "repaired")  # status of a decision's first reward: at once, or after further decisions


@dataclass
class Entry:
    """A decision, and the rewards that were sent for it."""

    decision: ServiceDecision
    state: str
    reward: float | None = None
    rewards: list[tuple[float | None, bool]] = field(default_factory=list)  # values, and whether they are defaults


@dataclass
class Ledger:
    """All decisions of a unit, and all differences from the service's answers and records."""

    unit: str
    max_delay: int
    default: float | None
    is_pooled: bool = False
    entries: list[Entry] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def add_decision(self, decision: ServiceDecision) -> None:
        """Add a decision; before it, the service fills in the reward that has just become late."""
        due = len(self.entries) - self.max_delay
        if due >= 0 and self.entries[due].state == "pending":
            entry = self.entries[due]
            entry.state, entry.reward = "missing" if self.default is None else "defaulted", self.default
            entry.rewards.append((self.default, True))
        self.expect(decision.t == len(self.entries), f"decision {decision.id} is step {decision.t}", len(self.entries))
        self.entries.append(Entry(decision, "unavailable" if decision.arm is None else "pending"))

    def add_reward(self, t: int, value: float, status: str) -> None:
        """Add a reward that was sent with a key of its own, and check the status that the service returned."""
        entry, age = self.entries[t], len(self.entries) - t
        expected = self._expected_status(entry, value, age)
        # With pooling, decisions of other units count too.
        is_late_by_others = self.is_pooled and status == "late" and age == self.max_delay
        is_expected = status in expected or status == "stored" or is_late_by_others
        self.expect(is_expected, f"the status of a reward of {entry.decision.id} is {status}", " or ".join(expected))
        entry.rewards.append((value, False))
        if "late" in expected or is_late_by_others:
            entry.state = entry.state if entry.state in ("observed", "corrected") else "late"
        elif expected != ("repeated",):
            is_corrected = expected == ("corrected",) and status != "stored"
            entry.state, entry.reward = "corrected" if is_corrected else "observed", value

    def _expected_status(self, entry: Entry, value: float, age: int) -> tuple[str, ...]:
        """Return the possible statuses of a reward that is sent now."""
        if age > self.max_delay:
            return ("late",)
        if not entry.rewards:
            return FIRST_REWARD
        return ("repeated",) if entry.reward == value else ("corrected",)

    def expect(self, is_expected: bool, actual: str, expected: object) -> None:
        """Add a difference unless the service did what was expected."""
        if not is_expected:
            self.differences.append(f"{self.unit}: {actual}; expected: {expected}")

    def compare(self, decisions: Sequence[DecisionRecord], rewards: Iterable[RewardRecord]) -> None:
        """Add the differences between the service's records of this unit and what was sent."""
        self.expect(len(decisions) == len(self.entries), f"{len(decisions)} decisions", len(self.entries))
        listed: dict[str, list[tuple[float | None, bool]]] = {}
        for reward in rewards:
            listed.setdefault(reward.decision, []).append((reward.value, reward.default))
        for entry, record in zip(self.entries, decisions, strict=False):
            name = f"decision {entry.decision.id}"
            recorded = ServiceDecision(**{each.name: getattr(record, each.name) for each in fields(ServiceDecision)})
            self.expect(recorded == entry.decision, f"{name} is recorded as {recorded}", entry.decision)
            self.expect(record.state == entry.state, f"the reward of {name} is {record.state}", entry.state)
            self.expect(record.reward == entry.reward, f"the reward of {name} is {record.reward!r}", repr(entry.reward))
            values = listed.pop(entry.decision.id, [])
            self.expect(values == entry.rewards, f"the rewards listed for {name} are {values}", entry.rewards)
        self.expect(not listed, f"rewards of unknown decisions are listed: {', '.join(listed)}", "none")
