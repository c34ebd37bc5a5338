"""larl: bandits whose rewards drift.

The latent auto-regressive bandit (`LatentAR`; with a vector for its state, `LatentVAR`), policies that play it (`LARL`,
baselines, oracles) and their comparison (`compare`). Names are loaded when first used, so that `import larl` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "theory",
    "variants",
    "vector",
    "world",
    "worlds",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"larl.{name}")
    if name in _HOMES:
        return getattr(import_module(f"larl.{_HOMES[name]}"), name)
    if not name.startswith("_") and name in import_module("larl.policies").REGISTRY:
        return import_module("larl.policies").REGISTRY[name]
    raise AttributeError(f"module 'larl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_MODULES, *import_module("larl.policies").REGISTRY, "__version__"])
