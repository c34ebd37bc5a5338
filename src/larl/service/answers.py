"""What the service answers, and what it decides where no policy does: for those who answer, and those who check."""

from collections.abc import Mapping, Sequence
from typing import Any

from larl import __version__
from larl.live.agent import Decision
from larl.service.seats import Study, info
from larl.service.terms import Terms

Words = dict[str, Any]


def made(study: Study, at: str) -> Words:
    """A study was made."""
    return info(study) | {"made": at, "terms": study.terms.to_dict()}


def changed(terms: Terms, at: str) -> Words:
    """Another policy is in force."""
    return {"study": terms.study, "policy_version": terms.version, "at": at, "terms": terms.to_dict()}


def closed(study: str, at: str) -> Words:
    """A study has ended."""
    return {"study": study, "closed": at}


def entered(study: str, unit: str, number: int, at: str) -> Words:
    """A unit was registered."""
    return {"study": study, "unit": unit, "number": number, "at": at}


def decided(terms: Terms, unit: str, found: Decision, source: str, at: str, larl: str = __version__) -> Words:
    """A decision; `larl` is the version that made it."""
    return {
        "id": found.id,
        "study": terms.study,
        "unit": unit,
        "t": found.t,
        "arm": found.arm,
        "probabilities": found.probabilities,
        "expected": found.expected,
        "width": found.width,
        "explored": found.explored,
        "fallback": source == "fallback",
        "source": source,
        "policy_version": terms.version,
        "larl": larl,
        "at": at,
    }


def rewarded(words: Mapping[str, Any], taken: str, at: str) -> Words:
    """A reward came, and was taken so."""
    return {"decision": words["decision"], "value": words["value"], "arm": words["arm"], "taken": taken, "at": at}


def defaulted(words: Mapping[str, Any], taken: str, at: str) -> Words:
    """No reward came, and this counts instead."""
    return {"decision": words["decision"], "value": words["value"], "taken": taken, "at": at}


def delivered(words: Mapping[str, Any], at: str) -> Words:
    """It is known whether a decision reached its unit."""
    return {"decision": words["decision"], "delivered": words["delivered"], "at": at}


def resolved(words: Mapping[str, Any], at: str) -> Words:
    """An issue is dealt with."""
    return {"issue": words["issue"], "resolved": at, "note": words["note"]}


def instead(terms: Terms, name: str) -> Words:
    """The reward that counts for a decision where none came."""
    return {"decision": name, "value": terms.default_reward, "arm": None}


def passed(terms: Terms, number: int, t: int) -> Decision:
    """A step at which no arm was available."""
    none = dict.fromkeys(terms.arms, 0.0)
    return Decision(terms.decision_id(number, t), t, None, none, None, None, explored=False)


def fallen_back(terms: Terms, number: int, t: int, available: Sequence[str] | None) -> Decision:
    """A decision by the fixed probabilities."""
    arm, odds = terms.fall_back(number, t, available)
    return Decision(terms.decision_id(number, t), t, arm, odds, None, None, explored=False)


def hosted(terms: Terms, number: int, t: int, words: Mapping[str, Any]) -> Decision:
    """A decision that the host made itself."""
    odds = words.get("probabilities") or {}
    return Decision(terms.decision_id(number, t), t, words["arm"], odds, None, None, explored=False)
