"""larl: bandits whose rewards drift.

The latent auto-regressive bandit (`LatentAR`; with a vector for its state, `LatentVAR`), policies that play it (`LARL`,
baselines, oracles) and their comparison (`compare`). Names are loaded when first used, so that `import larl` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larl import agent as agent
    from larl import client as client
    from larl import cohort as cohort
    from larl import comparison as comparison
    from larl import diagnosis as diagnosis
    from larl import engine as engine
    from larl import filter as filter  # noqa: A004
    from larl import paper as paper
    from larl import plots as plots
    from larl import policies as policies
    from larl import result as result
    from larl import study as study
    from larl import testbed as testbed
    from larl import theory as theory
    from larl import variants as variants
    from larl import vector as vector
    from larl import world as world
    from larl import worlds as worlds
    from larl._check import InvalidValue as InvalidValue
    from larl.agent import Agent as Agent
    from larl.agent import Decision as Decision
    from larl.agent import InvalidFile as InvalidFile
    from larl.agent import PolicyError as PolicyError
    from larl.client import Client as Client
    from larl.client import Refused as Refused
    from larl.client import Unreachable as Unreachable
    from larl.cohort import Cohort as Cohort
    from larl.comparison import compare as compare
    from larl.diagnosis import Diagnosis as Diagnosis
    from larl.diagnosis import diagnose as diagnose
    from larl.policies import *  # noqa: F403
    from larl.result import Result as Result
    from larl.result import join as join
    from larl.result import load as load
    from larl.vector import LatentVAR as LatentVAR
    from larl.world import JointNormal as JointNormal
    from larl.world import LatentAR as LatentAR
    from larl.world import Normal as Normal
    from larl.world import Walk as Walk

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agent",
    "Client": "client",
    "Cohort": "cohort",
    "Decision": "agent",
    "InvalidFile": "agent",
    "Diagnosis": "diagnosis",
    "InvalidValue": "_check",
    "JointNormal": "world",
    "LatentAR": "world",
    "LatentVAR": "vector",
    "Normal": "world",
    "PolicyError": "agent",
    "Refused": "client",
    "Result": "result",
    "Unreachable": "client",
    "Walk": "world",
    "compare": "comparison",
    "diagnose": "diagnosis",
    "join": "result",
    "load": "result",
}
_MODULES = (
    "agent",
    "client",
    "cohort",
    "comparison",
    "diagnosis",
    "engine",
    "filter",
    "paper",
    "plots",
    "policies",
    "result",
    "study",
    "testbed",
    "theory",
    "variants",
    "vector",
    "world",
    "worlds",
)


def _find(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"larl.{name}")
    if name in _HOMES:
        return getattr(import_module(f"larl.{_HOMES[name]}"), name)
    if not name.startswith("_"):
        policies = import_module("larl.policies")
        if name in policies.__all__:
            return getattr(policies, name)
        if name in policies.REGISTRY:  # a policy from outside the package
            return policies.REGISTRY[name]
    raise AttributeError(_unknown(name), name=name, obj=None)  # no obj: tracebacks would add a second suggestion


def _unknown(name: str) -> str:
    text = f"module 'larl' has no attribute {name!r}"
    if name.startswith("_"):  # protocols ask for such names, and nobody reads the message
        return text
    from difflib import get_close_matches

    known = {each.casefold(): each for each in __dir__()}
    close = get_close_matches(name.casefold(), known, n=1)
    return f"{text}; did you mean {known[close[0]]!r}?" if close else text


if not TYPE_CHECKING:  # type checkers know every name from the imports above
    __getattr__ = _find


def __dir__() -> list[str]:
    policies = import_module("larl.policies")
    return sorted({*_HOMES, *_MODULES, *policies.__all__, *policies.REGISTRY, "__version__"})
