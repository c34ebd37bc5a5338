"""The plan of a rehearsal, read from a TOML file and checked completely before anything starts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from larl.service.core.study_config import SETTINGS, StudyConfig
from larl.service.schemas.requests import NAME, NAME_WORDS
from larl.simulation.study_file import TomlSource, read_toml, read_world
from larl.worlds.base import World

KEYS = ("study", "world", "traffic", "units", "steps", "seed", "clients")
STUDY_NAME = re.compile(NAME)
share = number(0.0, 1.0)


@dataclass(frozen=True)
class Traffic:
    """How often each fault happens: shares of decisions, or of the rewards that are sent."""

    lost: float = checked(share, 0.0)  # rewards that are never sent
    late: float = checked(share, 0.0)  # rewards that are sent after further decisions …
    latest: int = checked(integer(1, 10_000), 20)  # … this many at most
    duplicate: float = checked(share, 0.0)  # rewards that are sent again, with the same key
    again: float = checked(share, 0.0)  # rewards that are sent again, with another key
    corrected: float = checked(share, 0.0)  # rewards that are sent again, with another value
    unavailable: float = checked(share, 0.0)  # steps without an available arm
    host: float = checked(share, 0.0)  # decisions that the host makes and reports
    unanswered: float = checked(share, 0.0)  # decisions whose response is lost: the request is repeated
    malformed: float = checked(share, 0.0)  # decisions followed by a request that must be refused

    def __post_init__(self) -> None:
        check_fields(self)
        for one, other in (("lost", "late"), ("unavailable", "host")):
            if getattr(self, one) + getattr(self, other) > 1.0:
                accepted = f"at most {1.0 - getattr(self, one):g}: {one} and {other} must not exceed 1 together"
                raise InvalidValue("Traffic", other, getattr(self, other), accepted)


@dataclass(frozen=True)
class Plan:
    """A rehearsal: the study to create, the world that generates rewards, and the faults of the traffic."""

    config: StudyConfig
    study_request: Mapping[str, Any]  # body of the request that creates the study
    world: World
    traffic: Traffic
    units: int = required(integer(1, 10_000))
    steps: int = required(integer(1, 100_000))
    seed: int = checked(integer(0, 2**62 - 1), 0)
    clients: int = checked(integer(1, 256), 8)  # requests at a time

    def __post_init__(self) -> None:
        check_fields(self)


def read_plan(path: str | Path, name: str | None = None, **overrides: Any) -> Plan:
    """Read a plan from a TOML file; InvalidValue names the file, line, table and key of a mistake.

    `name` replaces the name of the study; `overrides` replace units, steps, seed and clients.
    """
    values, source = read_toml(path)
    values |= {key: value for key, value in overrides.items() if value is not None}
    with source.locate_errors():
        for key in [key for key in values if key not in KEYS]:
            raise InvalidValue("", key, values[key], f"only the keys {', '.join(KEYS)}")
        for key in ("study", "world"):
            _check_table("", key, values.get(key))
        _check_table("", "traffic", values.get("traffic", {}))
        settings = {key: value for key, value in values.items() if key not in ("study", "world", "traffic")}
        known_fields(Plan, dict.fromkeys(("config", "study_request", "world", "traffic")) | settings, "")
    request = {"seed": settings.get("seed", 0)} | values["study"] | ({} if name is None else {"study": name})
    return _make_plan(values, request, settings, source)


def _make_plan(
    values: Mapping[str, Any], request: dict[str, Any], settings: Mapping[str, Any], source: TomlSource
) -> Plan:
    with source.locate_errors("world"):
        world = read_world(values["world"], "world", Path(source.file).parent)
    with source.locate_errors("traffic"):
        traffic = Traffic(**known_fields(Traffic, values.get("traffic", {}), "traffic"))
    with source.locate_errors("study"):
        config = _check_config(request, world)
    with source.locate_errors():
        plan = Plan(config, request, world, traffic, **settings)
    with source.locate_errors("world"):
        world.check_horizon("world", plan.steps)
    return plan


def _check_table(owner: str, name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidValue(owner, name, value, f"a table [{name}]")


def _check_name(owner: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not STUDY_NAME.fullmatch(value):
        raise InvalidValue(owner, name, value, NAME_WORDS)
    return value


def _check_arms(owner: str, name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(arm, str) and 0 < len(arm) <= 64 for arm in value):
        raise InvalidValue(owner, name, value, "a list of names of up to 64 characters")
    return value


CHECKS: dict[str, Check] = {
    "study": _check_name,
    "arms": _check_arms,
    "policy": _check_table,
    "seed": integer(0, 2**62 - 1),
    "max_delay": integer(1, 10_000),
    "horizon": optional(integer(1, 10**9)),
    "default_reward": optional(number()),
    "fallback": _check_table,
    "pooling": one_of("none", "full", "partial"),
    "registration": one_of("first_decision", "explicit"),
}


def _check_config(request: Mapping[str, Any], world: World) -> StudyConfig:
    """Return the study's settings, with the checks of the service."""
    known = [name for name in SETTINGS if name != "version"]
    for key in [key for key in request if key not in known]:
        raise InvalidValue("study", key, request[key], f"only the keys {', '.join(known)}")
    known_fields(StudyConfig, request, "study")
    for key, check in CHECKS.items():
        if key in request:
            check("study", key, request[key])
    if len(request["arms"]) != world.arms:
        raise InvalidValue("study", "arms", request["arms"], f"{world.arms} names, one for each arm of the world")
    context_size = int(getattr(world, "context", 0))
    if int(getattr(from_dict(request["policy"], "study.policy"), "context", 0)) not in (0, context_size):
        either = f"a policy without context, or with {context_size} numbers as the world has"
        accepted = either if context_size else "a policy without context: the world has none"
        raise InvalidValue("study", "policy", request["policy"], accepted)
    return StudyConfig.create(request)
