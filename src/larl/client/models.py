"""Responses of the service as NamedTuples, with the field names of the HTTP interface (docs/service.md)."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

from larl._core.validation import InvalidValue

Kind = TypeVar("Kind")


class Health(NamedTuple):
    """State of the service."""

    status: str  # "ok"
    larl: str  # version


class StudyInfo(NamedTuple):
    """Settings of a study."""

    study: str
    arms: list[str]
    policy: dict[str, Any]
    policy_version: int
    seed: int | None  # None if the token may not read the study
    floor: float  # minimum probability of an available arm
    patience: int  # maximum delay of a reward, in decisions
    pooling: str
    horizon: int | None
    default_reward: float | None
    fallback: dict[str, float]  # probability of each arm if the policy fails
    registration: str
    closed: str | None  # time
    versions: list[dict[str, Any]]


class PolicyChange(NamedTuple):
    """A new version of a study's policy, and the time from which it decides."""

    study: str
    policy_version: int
    at: str


class ClosedStudy(NamedTuple):
    """The time at which a study was closed."""

    study: str
    closed: str


class UnitInfo(NamedTuple):
    """A unit of a study."""

    study: str
    unit: str
    number: int
    at: str


class ServiceDecision(NamedTuple):
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
    source: str  # policy, fallback, host or unavailable
    policy_version: int
    larl: str
    at: str


class DecisionRecord(NamedTuple):
    """A decision with its reward, as the service has recorded them."""

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
    source: str
    policy_version: int
    larl: str
    at: str
    reason: str | None  # why not all arms were available
    state: str  # of the reward: pending, observed, corrected, missing, defaulted, late or unavailable
    reward: float | None
    played: str | None
    delivered: bool | None


class RewardReceipt(NamedTuple):
    """The service's confirmation of a reward."""

    decision: str
    value: float | None
    arm: str | None
    taken: str  # status: learnt, missing, repaired, corrected, repeated, late or stored
    at: str


class RewardRecord(NamedTuple):
    """A reward as it was sent, or a default reward that the service filled in."""

    decision: str
    value: float | None
    arm: str | None
    taken: str
    at: str
    seq: int
    unit: str
    default: bool


class DeliveryReceipt(NamedTuple):
    """The service's confirmation of whether a decision reached its unit."""

    decision: str
    delivered: bool
    at: str


class Issue(NamedTuple):
    """A problem of a study, and what the service did about it."""

    issue: int
    severity: str
    code: str
    unit: str | None
    happened: str
    done: str
    at: str
    resolved: str | None
    note: str | None


class ResolvedIssue(NamedTuple):
    """The service's confirmation that an issue is resolved."""

    issue: int
    resolved: str
    note: str


def parse(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Return a response as a NamedTuple. Fields that only later versions of the service have are ignored."""
    return kind(**{name: values[name] for name in cast(Any, kind)._fields})


def policy_spec(policy: Any) -> dict[str, Any]:
    """Return the spec of a policy as JSON types, from a Policy or a mapping."""
    if isinstance(policy, Mapping):
        return dict(policy)
    to_dict = getattr(policy, "to_dict", None)  # without importing larl.policies: a client needs no compiler
    if to_dict is None or isinstance(policy, type):
        accepted = 'a policy such as larl.LARL(s=5), or its spec, {"policy": "LARL", "s": 5}'
        raise InvalidValue("Client", "policy", policy, accepted)
    return dict(to_dict())
