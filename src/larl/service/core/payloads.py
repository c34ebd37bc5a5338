"""Responses of the service, as the journal stores them. Both serving and replay build them here."""

from dataclasses import dataclass
from typing import Any

from larl import __version__
from larl.client.models import DecisionSource, PolicyChange, ServiceDecision, StudyInfo
from larl.live.decision import Decision
from larl.service.core.state import StudyState
from larl.service.core.study_config import LEFT_OUT, StudyConfig
from larl.service.storage.events import canonical_json

NEVER = object()  # equal to no value


@dataclass(frozen=True, kw_only=True)
class StudyCreated(StudyInfo):
    """A study, and when it was created."""

    made: str
    config: dict[str, Any]


@dataclass(frozen=True)
class PolicyChanged(PolicyChange):
    """A new version of a study's policy, and the configuration in force from then on."""

    config: dict[str, Any]


@dataclass(frozen=True)
class DefaultReward:
    """A reward that the service filled in."""

    decision: str
    value: float | None
    status: str
    at: str


def payload_json(payload: Any) -> str:
    """Return a response dataclass as JSON, always in the same form."""
    values = {name: value for name, value in vars(payload).items() if LEFT_OUT.get(name, NEVER) != value}
    return canonical_json(values)


def study_created(study: StudyState, at: str) -> StudyCreated:
    """Return the response to the request that created a study."""
    info = study.info()
    return StudyCreated(**vars(info), made=at, config=study.config.to_dict())


def service_decision(
    config: StudyConfig, unit: str, decision: Decision, source: DecisionSource, at: str
) -> ServiceDecision:
    """Return a decision as the service answers it."""
    return ServiceDecision(
        id=decision.id,
        study=config.study,
        unit=unit,
        t=decision.t,
        arm=decision.arm,
        probabilities=decision.probabilities,
        expected=decision.expected,
        width=decision.width,
        explored=decision.explored,
        fallback=source == DecisionSource.FALLBACK,
        source=source,
        policy_version=config.version,
        larl=__version__,
        at=at,
    )


def plain_decision(
    config: StudyConfig, number: int, t: int, arm: str | None, probabilities: dict[str, float]
) -> Decision:
    """Return a decision that no policy made."""
    return Decision(config.decision_id(number, t), t, arm, probabilities, None, None, explored=False)
