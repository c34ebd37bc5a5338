"""Responses of the service as dataclasses, with the field names of the HTTP interface (docs/service.md)."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from larl._core.validation import InvalidValue, class_hint

Kind = TypeVar("Kind")
RENAMED = {"floor": "min_probability", "patience": "max_delay", "taken": "status"}  # in responses to old requests


class ServiceStatus(StrEnum):
    """Whether the service works."""

    OK = "ok"
    FAILING = "failing"


class DecisionSource(StrEnum):
    """What made a decision."""

    POLICY = "policy"
    FALLBACK = "fallback"  # the policy failed
    HOST = "host"  # made outside the service
    UNAVAILABLE = "unavailable"  # no arm was available
    HISTORY = "history"  # made before the study, and imported


class RewardStatus(StrEnum):
    """What the service did with a reward: the values of ``larl.RewardStatus``, and STORED if the policy failed."""

    LEARNT = "learnt"
    MISSING = "missing"
    REPAIRED = "repaired"
    CORRECTED = "corrected"
    REPEATED = "repeated"
    LATE = "late"
    STORED = "stored"


class RewardState(StrEnum):
    """What is known of the reward of a decision."""

    PENDING = "pending"
    OBSERVED = "observed"
    CORRECTED = "corrected"
    MISSING = "missing"
    DEFAULTED = "defaulted"
    LATE = "late"
    UNAVAILABLE = "unavailable"


class Severity(StrEnum):
    """How severe an issue is."""

    RED = "red"
    YELLOW = "yellow"
    GREEN = "green"


@dataclass(frozen=True)
class Health:
    """State of the service."""

    status: ServiceStatus
    larl: str  # version


@dataclass(frozen=True)
class StudyInfo:
    """Settings of a study."""

    study: str
    arms: list[str]
    policy: dict[str, Any]
    seed: int | None  # None unless the token is that of an admin
    min_probability: float | dict[str, float]  # of an available arm, or by arm
    max_delay: int  # of a reward, in decisions of its unit
    pooling: str
    horizon: int | None
    default_reward: float | None
    fallback: dict[str, float]  # probability of each arm if the policy fails
    registration: str
    policy_version: int
    closed: str | None  # time
    versions: list[dict[str, Any]]
    allocation: str | dict[str, Any] = "ucb"
    update_every: int | str | None = None  # decisions of a unit, or "night"
    warm_up: int = 0  # decisions of a unit
    warm_up_probabilities: dict[str, float] | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True)
class PolicyChange:
    """A new version of a study's policy, and the time from which it decides."""

    study: str
    policy_version: int
    at: str


@dataclass(frozen=True)
class ClosedStudy:
    """The time at which a study was closed."""

    study: str
    closed: str


@dataclass(frozen=True)
class UnitInfo:
    """A unit of a study."""

    study: str
    unit: str
    number: int
    at: str


@dataclass(frozen=True)
class HistoryReceipt:
    """The service's confirmation of imported steps."""

    study: str
    steps: int  # number of steps
    units: int  # number of units that they belong to
    at: str


@dataclass(frozen=True)
class ServiceDecision:
    """A decision of the service: fields as in ``larl.Decision``, and how it was made."""

    id: str
    study: str
    unit: str
    t: int
    arm: str | None  # None if no arm was available
    probabilities: dict[str, float]
    expected: float | None
    width: float | None
    explored: bool
    fallback: bool  # the policy failed, and the fallback probabilities decided
    source: DecisionSource
    policy_version: int
    larl: str
    at: str


@dataclass(frozen=True)
class DecisionRecord(ServiceDecision):
    """A decision with its reward, as the service has recorded them."""

    reason: str | None  # why not all arms were available
    state: RewardState
    reward: float | None
    played: str | None
    delivered: bool | None


@dataclass(frozen=True)
class RewardReceipt:
    """The service's confirmation of a reward."""

    decision: str
    value: float | None
    arm: str | None
    status: RewardStatus
    at: str


@dataclass(frozen=True)
class RewardRecord(RewardReceipt):
    """A reward as it was sent, or a default reward that the service filled in."""

    seq: int
    unit: str
    default: bool


@dataclass(frozen=True)
class DeliveryReceipt:
    """The service's confirmation of whether a decision reached its unit."""

    decision: str
    delivered: bool
    at: str


@dataclass(frozen=True)
class Issue:
    """A problem of a study, and what the service did about it."""

    issue: int
    severity: Severity
    code: str
    unit: str | None
    happened: str
    done: str
    at: str
    resolved: str | None
    note: str | None


@dataclass(frozen=True)
class ResolvedIssue:
    """The service's confirmation that an issue is resolved."""

    issue: int
    resolved: str
    note: str


def parse(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Return a response as a dataclass. Fields that only later versions of the service have are ignored."""
    if not RENAMED.keys().isdisjoint(values):
        values = {RENAMED.get(name, name): value for name, value in values.items()}
    given = [field for field in fields(kind) if field.name in values or field.default is MISSING]  # type: ignore[arg-type]
    return kind(**{field.name: _convert(field.type, values[field.name]) for field in given})


def _convert(kind: Any, value: Any) -> Any:
    """Return a value as the enum of its field; values that only later versions have stay text."""
    is_enum = isinstance(kind, type) and issubclass(kind, StrEnum)
    return kind(value) if is_enum and value in set(kind) else value


def json_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a study as JSON types; an allocation may be a larl.Allocation."""
    plain = {name: getattr(value, "to_json_type", None) for name, value in settings.items()}
    return {name: convert() if (convert := plain[name]) else value for name, value in settings.items()}


def policy_spec(policy: Any) -> dict[str, Any]:
    """Return the spec of a policy as JSON types, from a Policy or a mapping."""
    if isinstance(policy, Mapping):
        return dict(policy)
    to_dict = getattr(policy, "to_dict", None)  # without importing larl.policies: a client needs no compiler
    if to_dict is None or isinstance(policy, type):
        accepted = 'a policy such as larl.LARL(s=5), or its spec, {"policy": "LARL", "s": 5}'
        is_class = to_dict is not None and isinstance(policy, type)
        raise InvalidValue("Client", "policy", policy, accepted + (class_hint(policy) if is_class else ""))
    return dict(to_dict())


def reward_number(value: Any) -> Any:
    """Return a reward as the service takes it: true and false, also NumPy's, as 1 and 0."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    return float(plain) if isinstance(plain, bool) else plain


def decision_id(decision: "ServiceDecision | DecisionRecord | str") -> str:
    """Return the id of a decision."""
    return decision if isinstance(decision, str) else decision.id
