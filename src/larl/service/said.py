"""What the service answers, as types."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict


class DecisionSource(StrEnum):
    """What made a decision."""

    POLICY = "policy"
    FALLBACK = "fallback"
    HOST = "host"
    UNAVAILABLE = "unavailable"


class RewardStatus(StrEnum):
    """What was done with a reward."""

    LEARNT = "learnt"
    MISSING = "missing"
    REPAIRED = "repaired"
    CORRECTED = "corrected"
    REPEATED = "repeated"
    LATE = "late"
    STORED = "stored"


class DecisionStatus(StrEnum):
    """What is known of the reward of a decision."""

    PENDING = "pending"
    OBSERVED = "observed"
    CORRECTED = "corrected"
    MISSING = "missing"
    DEFAULTED = "defaulted"
    LATE = "late"
    UNAVAILABLE = "unavailable"


class IssueSeverity(StrEnum):
    """How bad an issue is."""

    RED = "red"
    YELLOW = "yellow"
    GREEN = "green"


class ServiceStatus(StrEnum):
    """Whether the service works."""

    OK = "ok"
    FAILING = "failing"


class Said(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


class StudyInfo(Said):
    """A study."""

    study: str
    arms: list[str]
    policy: dict[str, Any]
    policy_version: int
    seed: int | None
    floor: float
    patience: int
    pooling: str
    horizon: int | None
    default_reward: float | None
    fallback: dict[str, float]
    registration: str
    closed: str | None
    versions: list[dict[str, Any]]


class StudyMade(StudyInfo):
    """A study, and when it was made."""

    made: str
    terms: dict[str, Any]


class PolicyChanged(Said):
    """Which version of the policy is in force from when on."""

    study: str
    policy_version: int
    at: str
    terms: dict[str, Any]


class Closed(Said):
    """When a study was closed."""

    study: str
    closed: str


class UnitInfo(Said):
    """A unit."""

    study: str
    unit: str
    number: int
    at: str


class DecisionMade(Said):
    """A decision."""

    id: str
    study: str
    unit: str
    t: int
    arm: str | None
    probabilities: dict[str, float]
    expected: float | None
    width: float | None
    explored: bool
    fallback: bool
    source: DecisionSource
    policy_version: int
    larl: str
    at: str


class RewardTaken(Said):
    """How a reward was taken."""

    decision: str
    value: float | None
    arm: str | None
    taken: RewardStatus
    at: str


class Delivered(Said):
    """That it is known whether a decision was delivered."""

    decision: str
    delivered: bool
    at: str


class Resolved(Said):
    """That an issue is resolved."""

    issue: int
    resolved: str
    note: str


class Issue(Said):
    """Something that went wrong."""

    issue: int
    severity: IssueSeverity
    code: str
    unit: str | None
    happened: str
    done: str
    at: str
    resolved: str | None
    note: str | None


class DecisionState(DecisionMade):
    """A decision, and what is known of it now."""

    reason: str | None
    state: DecisionStatus
    reward: float | None
    played: str | None
    delivered: bool | None


class Reward(RewardTaken):
    """A reward as it was sent, or as it was filled in."""

    seq: int
    unit: str
    default: bool


class Health(Said):
    """How the service is."""

    status: ServiceStatus
    larl: str


class Wrong(BaseModel):
    """Why a request is refused (application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None
    accepted: str | None = None


def page_of(kind: Any) -> Any:
    """A page of a list, and where the next begins."""
    fields = {"__annotations__": {"items": list[kind], "next": int | None}, "__module__": __name__}
    return type(
        f"{kind.__name__}s", (Said,), {**fields, "__doc__": "A page; `next` is the cursor of the one after it."}
    )
