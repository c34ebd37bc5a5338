"""What a service answers, as types."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

Kind = TypeVar("Kind")


class Health(NamedTuple):
    """How a service is."""

    status: str
    larl: str


class Study(NamedTuple):
    """A study."""

    study: str
    arms: list[str]
    policy: dict[str, Any]
    policy_version: int
    seed: int | None  # None for who may not read the study
    floor: float
    patience: int
    pooling: str
    horizon: int | None
    default_reward: float | None
    fallback: dict[str, float]  # probability of each arm where the policy fails
    registration: str
    closed: str | None
    versions: list[dict[str, Any]]


class PolicyChange(NamedTuple):
    """Which version of a study's policy is in force from when on."""

    study: str
    policy_version: int
    at: str


class Closed(NamedTuple):
    """When a study was closed."""

    study: str
    closed: str


class Unit(NamedTuple):
    """A unit."""

    study: str
    unit: str
    number: int
    at: str


class Decided(NamedTuple):
    """A decision."""

    id: str
    study: str
    unit: str
    t: int
    arm: str | None  # None where no arm was available
    probabilities: dict[str, float]
    expected: float | None
    width: float | None
    explored: bool
    fallback: bool  # the policy failed, and fixed probabilities decided
    source: str  # policy, fallback, host or unavailable
    policy_version: int
    larl: str
    at: str


class Outcome(NamedTuple):
    """A decision, and what became of it."""

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
    state: str  # pending, observed, corrected, missing, defaulted, late or unavailable
    reward: float | None
    played: str | None
    delivered: bool | None


class Taken(NamedTuple):
    """How a reward was taken."""

    decision: str
    value: float | None
    arm: str | None
    taken: str  # learnt, missing, repaired, corrected, repeated, late or stored
    at: str


class Reward(NamedTuple):
    """A reward as it was sent, or as it was filled in."""

    decision: str
    value: float | None
    arm: str | None
    taken: str
    at: str
    seq: int
    unit: str
    default: bool


class Delivered(NamedTuple):
    """Whether what was decided reached the unit."""

    decision: str
    delivered: bool
    at: str


class Issue(NamedTuple):
    """Something that went wrong, and what was done."""

    issue: int
    severity: str
    code: str
    unit: str | None
    happened: str
    done: str
    at: str
    resolved: str | None
    note: str | None


class Resolved(NamedTuple):
    """That an issue is dealt with."""

    issue: int
    resolved: str
    note: str


def read(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """An answer as its type; what a later service says beyond it is left out."""
    return kind(**{name: values[name] for name in cast(Any, kind)._fields})
