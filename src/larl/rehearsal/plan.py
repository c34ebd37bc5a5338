"""What a rehearsal is to be, from a TOML file that is checked as a whole before anything starts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from larl._core.validation import (
    Check,
    InvalidValue,
    check_fields,
    checked,
    integer,
    known_fields,
    number,
    one_of,
    optional,
    required,
)
from larl.policies import from_dict
from larl.service.asked import NAME, NAME_WORDS
from larl.service.terms import Terms
from larl.simulation.study_file import TomlSource, read_toml, read_world
from larl.worlds.base import World

KEYS = ("study", "world", "traffic", "units", "steps", "seed", "clients")
STUDY_NAME = re.compile(NAME)
share = number(0.0, 1.0)


@dataclass(frozen=True)
class Traffic:
    """How often what happens: shares of decisions, or of the rewards that are sent."""

    lost: float = checked(share, 0.0)  # rewards that are never sent
    late: float = checked(share, 0.0)  # rewards that come after further decisions …
    latest: int = checked(integer(1, 10_000), 20)  # … this many at most
    duplicate: float = checked(share, 0.0)  # rewards that are sent again, with the same key
    again: float = checked(share, 0.0)  # rewards that are sent again, with another key
    corrected: float = checked(share, 0.0)  # rewards that are sent again, with another value
    unavailable: float = checked(share, 0.0)  # moments without an arm
    host: float = checked(share, 0.0)  # decisions that the host makes itself
    unanswered: float = checked(share, 0.0)  # decisions whose answer gets lost: the request is repeated
    malformed: float = checked(share, 0.0)  # decisions after which something is sent that must be refused

    def __post_init__(self) -> None:
        check_fields(self)
        for one, other in (("lost", "late"), ("unavailable", "host")):
            if getattr(self, one) + getattr(self, other) > 1.0:
                accepted = f"at most {1.0 - getattr(self, one):g}: what is left beside {one}"
                raise InvalidValue("Traffic", other, getattr(self, other), accepted)


@dataclass(frozen=True)
class Plan:
    """A rehearsal: the study as the service is asked to make it, the world its units live in, and the traffic."""

    terms: Terms
    words: Mapping[str, Any]  # of the request that makes the study
    world: World
    traffic: Traffic
    units: int = required(integer(1, 10_000))
    steps: int = required(integer(1, 100_000))
    seed: int = checked(integer(0, 2**62 - 1), 0)
    clients: int = checked(integer(1, 256), 8)  # requests at a time

    def __post_init__(self) -> None:
        check_fields(self)


def read_plan(path: str | Path, name: str | None = None, **instead: Any) -> Plan:
    """The rehearsal in a TOML file, or a refusal that names the file, the line, the table and the key.

    `name`: of the study, in place of the file's; `instead`: the same for units, steps, seed and clients.
    """
    values, places = read_toml(path)
    values |= {key: value for key, value in instead.items() if value is not None}
    with places.locate_errors():
        for key in [key for key in values if key not in KEYS]:
            raise InvalidValue("", key, values[key], f"only the keys {', '.join(KEYS)}")
        for key in ("study", "world"):
            _table("", key, values.get(key))
        _table("", "traffic", values.get("traffic", {}))
        plain = {key: value for key, value in values.items() if key not in ("study", "world", "traffic")}
        known_fields(Plan, dict.fromkeys(("terms", "words", "world", "traffic")) | plain, "")
    words = {"seed": plain.get("seed", 0)} | values["study"] | ({} if name is None else {"study": name})
    return _plan(values, words, plain, places)


def _plan(values: Mapping[str, Any], words: dict[str, Any], plain: Mapping[str, Any], places: TomlSource) -> Plan:
    with places.locate_errors("world"):
        world = read_world(values["world"], "world")
    with places.locate_errors("traffic"):
        traffic = Traffic(**known_fields(Traffic, values.get("traffic", {}), "traffic"))
    with places.locate_errors("study"):
        terms = _terms(words, world)
    with places.locate_errors():
        return Plan(terms, words, world, traffic, **plain)


def _table(owner: str, name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidValue(owner, name, value, f"a table [{name}]")


def _name(owner: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not STUDY_NAME.fullmatch(value):
        raise InvalidValue(owner, name, value, NAME_WORDS)
    return value


def _arms(owner: str, name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(arm, str) and 0 < len(arm) <= 64 for arm in value):
        raise InvalidValue(owner, name, value, "a list of names of up to 64 letters")
    return value


CHECKS: dict[str, Check] = {
    "study": _name,
    "arms": _arms,
    "policy": _table,
    "seed": integer(0, 2**62 - 1),
    "patience": integer(1, 10_000),
    "horizon": optional(integer(1, 10**9)),
    "default_reward": optional(number()),
    "fallback": _table,
    "pooling": one_of("none", "full", "partial"),
    "registration": one_of("first_decision", "explicit"),
}


def _terms(words: Mapping[str, Any], world: World) -> Terms:
    """The study's terms, as the service would check them."""
    known = [item.name for item in fields(Terms) if item.name != "version"]
    for key in [key for key in words if key not in known]:
        raise InvalidValue("study", key, words[key], f"only the keys {', '.join(known)}")
    known_fields(Terms, words, "study")
    for key, check in CHECKS.items():
        if key in words:
            check("study", key, words[key])
    if len(words["arms"]) != world.arms:
        raise InvalidValue("study", "arms", words["arms"], f"{world.arms} names, one for each arm of the world")
    shown = int(getattr(world, "context", 0))
    if int(getattr(from_dict(words["policy"], "study.policy"), "context", 0)) not in (0, shown):
        accepted = f"a policy that reads the {shown} numbers that the world shows, or none"
        raise InvalidValue("study", "policy", words["policy"], accepted)
    return Terms.of(words)
