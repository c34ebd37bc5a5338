"""Bodies and queries of requests."""

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from larl._core.validation import LARGEST
from larl.service.clock import stamp
from larl.service.schemas.alternatives import Allocation, Arm, Minimum, Probability, Schedule
from larl.service.storage.events import EventKind


def _in_utc(text: str) -> str:
    """Return a time in UTC; raise ValueError if its offset is missing."""
    try:
        time = datetime.fromisoformat(text)
        if "T" in text and time.tzinfo is not None:
            return stamp(time)
    except (ValueError, OverflowError):
        pass
    raise ValueError("a time with its offset from UTC, such as 2026-11-16T08:30:00+01:00")


def _finite_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a policy's spec; raise ValueError if a number in it is not finite."""
    try:
        json.dumps(spec, allow_nan=False)
    except ValueError:
        raise ValueError("a spec whose numbers are finite") from None
    return spec


MAX_STEPS = 1000  # of an import
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
NAME_WORDS = "1 to 64 characters of a–z, 0–9, - and _, the first a letter or digit"
WORD = r"[A-Za-z0-9_.:-]{1,128}"
NO_CONTROL = r"^[^\x00-\x1f\x7f]+$"
NO_CONTROL_BUT_LINES = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"
DECISION = rf"{NAME}\.[0-9]{{1,18}}-[0-9]{{1,18}}-[0-9a-f]{{16}}"
PATTERNS = {  # descriptions of accepted values, by pattern
    f"^{NAME}$": NAME_WORDS,
    f"^{WORD}$": "1 to 128 characters of A–Z, a–z, 0–9, _ . : and -",
    f"^{DECISION}$": "the id of a decision, as the service returned it",
    NO_CONTROL: "text without control characters",
    NO_CONTROL_BUT_LINES: "text without control characters other than tabs and line breaks",
}
Name = Annotated[str, Field(pattern=f"^{NAME}$", examples=["sleep"])]
Unit = Annotated[str, Field(pattern=f"^{WORD}$", description="A pseudonym.", examples=["unit-17"])]
Key = Annotated[
    str,
    Field(
        pattern=f"^{WORD}$",
        examples=["unit-17-2026-11-16-morning"],
        description="Idempotency key: a request with the same key and payload gets the same response.",
    ),
]
Spec = Annotated[
    dict[str, Any],
    Field(examples=[{"policy": "LARL", "s": 5}], description="A policy's spec."),
    AfterValidator(_finite_spec),
]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(_in_utc)]
Note = Annotated[str, Field(max_length=500, pattern=NO_CONTROL_BUT_LINES)]


class Body(BaseModel):
    """A body without unknown fields and without type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Request(Body):
    """The body of a command; `event` is the kind of event that it appends."""

    event: ClassVar[EventKind]

    def stored(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return vars(self)

    @classmethod
    def from_stored(cls, values: dict[str, Any]) -> Self:
        """Return the request whose fields were stored, without validation."""
        return cls.model_construct(**values)


class NewStudy(Request):
    """A study to create."""

    event = EventKind.STUDY
    study: Name
    arms: Annotated[list[Arm], Field(min_length=2, max_length=1000)]
    policy: Spec
    seed: Annotated[int, Field(ge=0, lt=2**62)] | None = None
    min_probability: Minimum = Field(0.0, description="Minimum probability of every available arm, or by arm.")
    max_delay: Annotated[int, Field(ge=1, le=10_000)] = Field(
        50, description="Maximum delay of a reward, in decisions of its unit, its own included."
    )
    pooling: Literal["none", "full", "partial"] = "none"
    horizon: Annotated[int, Field(ge=1, le=10**9)] | None = None
    default_reward: Number | None = Field(None, description="Replaces a reward that did not come; null: it is missing.")
    fallback: dict[Arm, Probability] | None = Field(
        None, description="Probability of each arm if the policy fails; equal by default."
    )
    registration: Literal["first_decision", "explicit"] = "first_decision"
    allocation: Allocation | None = Field(
        None, description="How probabilities follow from the policy's posterior; ucb by default."
    )
    update_every: Schedule | None = Field(
        None, description="Decisions of a unit between two updates, or night; by default every decision learns."
    )
    warm_up: Annotated[int, Field(ge=0, le=10**9)] | None = Field(
        None, description="First decisions of a unit with fixed probabilities; 0 by default."
    )
    warm_up_probabilities: dict[Arm, Probability] | None = Field(None, description="Equal by default.")
    time_zone: Annotated[str, Field(min_length=1, max_length=64, pattern=NO_CONTROL)] | None = Field(
        None, description="In which a day begins, for night; UTC by default.", examples=["Europe/Berlin"]
    )


class NewPolicy(Request):
    """A new policy for a study."""

    event = EventKind.POLICY
    key: Key
    policy: Spec
    replaces: Annotated[int, Field(ge=1, le=10**6)] = Field(description="The version in force, policy_version.")
    reason: Note
    min_probability: Minimum | None = Field(None, description="Unchanged by default.")
    allocation: Allocation | None = Field(None, description="Unchanged by default.")


class CloseStudyRequest(Request):
    """The end of a study."""

    event = EventKind.CLOSED
    reason: Note = ""


class NewUnit(Request):
    """A unit to register."""

    event = EventKind.UNIT
    unit: Unit


class DecisionRequest(Request):
    """A request for a decision."""

    event = EventKind.DECISION
    unit: Unit
    key: Key
    available: Annotated[list[Arm], Field(max_length=1000)] | None = Field(
        None, description="Arms that can be chosen; all by default; [] if none can."
    )
    reason: Note | None = Field(None, description="Why not all arms are available.")
    context: Annotated[list[Number], Field(max_length=1000)] | None = None


class ExternalDecisionRequest(Request):
    """A decision that was made outside the service."""

    event = EventKind.DECISION
    unit: Unit
    key: Key
    arm: Arm
    made: Time = Field(
        description="Time of the decision, with its offset from UTC.", examples=["2026-11-16T08:30:00+01:00"]
    )
    probabilities: dict[Arm, Probability] | None = Field(None, description="Probability of every arm, if known.")
    context: Annotated[list[Number], Field(max_length=1000)] | None = None
    reason: Note | None = None


class HistoryStep(Body):
    """A step that was made before the study, with its reward."""

    id: Key = Field(description="Id of the step, the key of its decision: it must be new in the study.")
    unit: Unit
    arm: Arm | None = Field(description="null: no arm was available.")
    reward: Number | None = Field(description="null: the reward is missing. Send 1 or 0 for true or false.")
    made: Time | None = Field(None, description="Time of the decision, with its offset from UTC, if known.")
    probabilities: dict[Arm, Probability] | None = Field(None, description="Probability of every arm, if known.")
    context: Annotated[list[Number], Field(max_length=1000)] | None = None


class HistoryRequest(Request):
    """Steps of a pilot, in order of time."""

    event = EventKind.HISTORY
    key: Key
    steps: Annotated[list[HistoryStep], Field(min_length=1, max_length=MAX_STEPS)]

    def stored(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return vars(self) | {"steps": [vars(step) for step in self.steps]}

    @classmethod
    def from_stored(cls, values: dict[str, Any]) -> Self:
        """Return the request whose fields were stored, without validation."""
        return cls.model_construct(
            **values | {"steps": [HistoryStep.model_construct(**each) for each in values["steps"]]}
        )


class RewardRequest(Request):
    """The reward of a decision."""

    event = EventKind.REWARD
    key: Key
    value: Number | None = Field(description="null: there is no reward. Send 1 or 0 for true or false.")
    arm: Arm | None = Field(None, description="The arm that was played, if another one.")


class DeliveryRequest(Request):
    """Whether a decision reached its unit."""

    event = EventKind.DELIVERED
    key: Key
    delivered: bool = True


class Resolution(Request):
    """How an issue was resolved."""

    event = EventKind.RESOLVED
    note: Note


class Query(BaseModel):
    """A query without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class After(Query):
    """The last event that the client knows."""

    after: Annotated[int, Field(ge=0, lt=2**62)] = Field(0, description="Cursor: number of the last known event.")


class ExportFormat(Query):
    """The format of an export: a table, or lines for Vowpal Wabbit."""

    format: Literal["csv", "vw"] = "csv"


class UnitAfter(After):
    """The unit, and the number of the last event that the page knows."""

    unit: Unit


class Page(After):
    """A page of a list: `after` is `next` of the page before."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class UnitPage(Page):
    """A page of a list, of one unit or of all."""

    unit: Unit | None = None
