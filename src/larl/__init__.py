"""larl: bandits whose rewards drift.

- Simulate: worlds with a hidden auto-regressive state (`LatentAR`, `LatentVAR`), policies (`LARL`, `Auto`, baselines,
  oracles), and `compare`, which returns a `Result`.
- Diagnose: `diagnose` tests a log of decisions for drift.
- Deploy: `Agent` and `Cohort` make decisions one at a time; `Client` talks to the HTTP service.

Names are loaded on first use, so `import larl` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larl import client as client
    from larl import diagnosis as diagnosis
    from larl import live as live
    from larl import logs as logs
    from larl import policies as policies
    from larl import priors as priors
    from larl import reports as reports
    from larl import simulation as simulation
    from larl import statespace as statespace
    from larl import theory as theory
    from larl import worlds as worlds
    from larl._core.validation import InvalidValue as InvalidValue
    from larl.client import Client as Client
    from larl.diagnosis import Diagnosis as Diagnosis
    from larl.diagnosis import diagnose as diagnose
    from larl.live.agent import Agent as Agent
    from larl.live.cohort import Cohort as Cohort
    from larl.live.decision import Decision as Decision
    from larl.live.decision import PolicyError as PolicyError
    from larl.live.decision import RewardStatus as RewardStatus
    from larl.live.files import InvalidFile as InvalidFile
    from larl.policies import *  # noqa: F403
    from larl.policies.auto.prior import Prior as Prior
    from larl.priors import learn_prior as learn_prior
    from larl.simulation import gym as gym
    from larl.simulation import plots as plots
    from larl.simulation import study as study
    from larl.simulation import tables as tables
    from larl.simulation.compare import compare as compare
    from larl.simulation.result import Result as Result
    from larl.simulation.result_files import join as join
    from larl.simulation.result_files import load as load
    from larl.worlds import JointNormal as JointNormal
    from larl.worlds import LatentAR as LatentAR
    from larl.worlds import LatentVAR as LatentVAR
    from larl.worlds import Normal as Normal
    from larl.worlds import Simulator as Simulator

__version__ = "0.1.0"

_NAMES = {  # public name: the module that defines it
    "Agent": "live.agent",
    "Client": "client",
    "Cohort": "live.cohort",
    "Decision": "live.decision",
    "Diagnosis": "diagnosis",
    "InvalidFile": "live.files",
    "InvalidValue": "_core.validation",
    "JointNormal": "worlds",
    "LatentAR": "worlds",
    "LatentVAR": "worlds",
    "Normal": "worlds",
    "PolicyError": "live.decision",
    "Prior": "policies.auto.prior",
    "Result": "simulation.result",
    "RewardStatus": "live.decision",
    "Simulator": "worlds",
    "compare": "simulation.compare",
    "diagnose": "diagnosis",
    "join": "simulation.result_files",
    "learn_prior": "priors",
    "load": "simulation.result_files",
}
_SPECS = ("Allocation", "Deployed", "Policy")  # of larl.policies, and not registered
_MODULES = {  # public module: where it is
    "client": "client",
    "diagnosis": "diagnosis",
    "gym": "simulation.gym",
    "live": "live",
    "logs": "logs",
    "plots": "simulation.plots",
    "policies": "policies",
    "priors": "priors",
    "reports": "reports",
    "simulation": "simulation",
    "statespace": "statespace",
    "study": "simulation.study",
    "tables": "simulation.tables",
    "theory": "theory",
    "worlds": "worlds",
}


def _find(name: str) -> Any:
    if name == "__all__":  # from larl import *
        return [each for each in __dir__() if each != "__version__"]
    if name in _MODULES:
        return import_module(f"larl.{_MODULES[name]}")
    if name in _NAMES:
        return getattr(import_module(f"larl.{_NAMES[name]}"), name)
    if not name.startswith("_"):
        policies = import_module("larl.policies")
        if name in policies.__all__:
            return getattr(policies, name)
        if name in policies.REGISTRY:  # a policy from outside the package
            return policies.REGISTRY[name]
    raise AttributeError(_unknown(name), name=name, obj=None)  # without obj, Python adds no second suggestion


def _unknown(name: str) -> str:
    text = f"module 'larl' has no attribute {name!r}"
    if name.startswith("_"):  # looked up by protocols, not by users
        return text
    from difflib import get_close_matches

    known = {each.casefold(): each for each in __dir__()}
    close = get_close_matches(name.casefold(), known, n=1)
    return f"{text}; did you mean {known[close[0]]!r}?" if close else text


if not TYPE_CHECKING:  # type checkers use the imports above
    __getattr__ = _find


def __dir__() -> list[str]:
    """What users need. Tools to write a policy, such as `register`, are listed in `larl.policies`."""
    return sorted({*_NAMES, *_MODULES, *import_module("larl.policies").REGISTRY, *_SPECS, "__version__"})
