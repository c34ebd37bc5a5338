"""State of a study and of a unit: each is a fold over its events in the journal."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from larl.client.models import DecisionSource, StudyInfo
from larl.service.core.streams import ref_to_secret
from larl.service.core.study_config import StudyConfig
from larl.service.storage.events import REWARD_EVENTS, DamagedRow, Event, EventKind


@dataclass
class StudyState:
    """A study: all versions of its configuration, and when it was closed."""

    versions: list[StudyConfig] = field(default_factory=list)
    closed: str | None = None
    seq: int = 0  # the last event that changed it

    @property
    def config(self) -> StudyConfig:
        """The configuration in force."""
        return self.versions[-1]

    def apply(self, event: Event) -> None:
        """Apply an event of STUDY_EVENTS."""
        if event.kind == EventKind.CLOSED:
            self.closed = event.at
        else:
            self.versions.append(self._config(event))
        self.seq = max(self.seq, event.seq)

    def _config(self, event: Event) -> StudyConfig:
        try:
            secret = ref_to_secret(event.ref) if event.kind == EventKind.STUDY else self.config.secret
            return StudyConfig.from_dict(event.response["config"], secret)
        except (LookupError, TypeError, ValueError) as error:
            raise DamagedRow(event.seq, f"its configuration is not valid ({error})") from error

    def info(self) -> StudyInfo:
        """Return the study as clients see it."""
        values = self.config.to_dict() | {"fallback": dict(zip(self.config.arms, self.config.fallback, strict=True))}
        values["policy_version"] = values.pop("version")
        return StudyInfo(**values, closed=self.closed, versions=[dict(config.policy) for config in self.versions])


def fold_studies(events: Iterable[Event]) -> dict[str, StudyState]:
    """Return the studies that events of STUDY_EVENTS define, by name."""
    studies: dict[str, StudyState] = {}
    for event in events:
        studies.setdefault(event.study, StudyState()).apply(event)
    return studies


def _arm(event: Event) -> tuple[str | None, bool]:
    """Return the arm of a decision, and whether it was imported.

    If the row is damaged, any arm is returned: its reward is pending, as with most decisions.
    """
    try:
        response = event.response
    except DamagedRow:
        return "", False
    return response["arm"], response["source"] == DecisionSource.HISTORY


@dataclass
class UnitState:
    """A unit: its number, its number of decisions, and those whose reward is pending."""

    unit: str
    number: int
    steps: int = 0
    pending: dict[int, str] = field(default_factory=dict)  # step: id of the decision
    seq: int = 0
    has_decided: bool = False  # in this study: imported steps do not count

    def apply(self, event: Event) -> None:
        """Apply an event of this unit."""
        if event.kind == EventKind.DECISION:
            arm, imported = _arm(event)
            self.add_decision(event.number or 0, event.ref or "", arm, imported=imported)
        elif event.kind in REWARD_EVENTS:
            self.pending.pop(event.number or 0, None)
        self.seq = max(self.seq, event.seq)

    def add_decision(self, t: int, decision: str, arm: str | None, *, imported: bool = False) -> None:
        """Add the decision of step t."""
        self.steps = t + 1
        self.has_decided = self.has_decided or not imported
        if arm is not None:
            self.pending[t] = decision

    def overdue(self, max_delay: int) -> list[tuple[int, str]]:
        """Return steps and ids of the decisions whose reward is replaced by the default before the next decision."""
        return [(t, decision) for t, decision in self.pending.items() if t <= self.steps - max_delay]
