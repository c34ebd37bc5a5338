"""Compile kernels before they are needed: `larl precompile`, for an image, a server, or a demonstration."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from larl import worlds
from larl._core import compile as _compile
from larl._core.validation import InvalidValue
from larl.live.agent import Agent
from larl.live.cohort import Cohort
from larl.policies import REGISTRY, DynamicOracle, Policy
from larl.policies._pooling import PARTIAL
from larl.simulation.compare import compare

HORIZON = 60
# What a policy asks for; where States differ by a setting, one of each.
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "AR2": ({"alpha": 0.9, "sigma": 1.0},),
    "ARUCB": ({"order": 1},),
    "DiscountedThompson": ({"discount": 0.9},),
    "DiscountedUCB": ({"discount": 0.9}, {"discount": 0.9, "standardise": True}),
    "KalmanOracle": ({}, {"filter": "steady"}),
    "LARL": ({"s": 1}, {"s": 1, "radius": "theory"}, {"s": 1, "standardise": True}),
    "LARLBIC": ({"explore": 40},),
    "Rexp3": ({"variation": 10.0},),
    "SlidingWindowLinUCB": ({"s": 1, "window": 20},),
    "SlidingWindowThompson": ({"window": 20},),
    "SlidingWindowUCB": ({"window": 20}, {"window": 20, "standardise": True}),
    "UCB": ({}, {"standardise": True}),
}


def specs(name: str) -> list[Policy]:
    """One spec for each kind of State that a policy has."""
    return [REGISTRY[name](**settings) for settings in SETTINGS.get(name, ({},))]


def precompile_policy(spec: Policy) -> None:
    """Whatever a comparison, an agent or a cohort of a policy has to compile in a `LatentAR` or `LatentVAR`."""
    world = worlds.paper(1)
    for keep in ("all", "summary"):
        compare({"it": spec}, world, horizon=HORIZON, trials=1, keep=keep, threads=1, progress=False)
    if not isinstance(spec, DynamicOracle):
        Agent(spec, world.arms, horizon=HORIZON, world=world)
    if type(spec.init(world.arms, horizon=HORIZON, world=world)) in PARTIAL:
        for pooling in ("full", "partial"):
            compare({"it": spec}, world, horizon=2, trials=1, units=2, pooling=pooling, threads=1, progress=False)
            Cohort(spec, world.arms, pooling=pooling)


def precompile(names: Iterable[str] = (), say: Callable[[str], None] = print) -> int:
    """Compile the kernels of some policies, or of all, and say how far it is; returns how many had to be compiled."""
    wanted = list(names) or sorted(REGISTRY)
    for name in wanted:
        if name not in REGISTRY:
            raise InvalidValue("larl precompile", "name", name, ", ".join(sorted(REGISTRY)))
    told, began = _compile.compilations, time.monotonic()
    before, told.quiet = told.count, True
    try:
        for number, name in enumerate(wanted, 1):
            done, started = told.count, time.monotonic()
            for spec in specs(name):
                precompile_policy(spec)
            took, new = time.monotonic() - started, told.count - done
            verdict = f"{new} kernels compiled in {took:.1f} s" if new else "already compiled"
            say(f"{number:{len(str(len(wanted)))}d}/{len(wanted)}  {name}: {verdict}")
    finally:
        told.quiet = False
    new, took = told.count - before, time.monotonic() - began
    say(f"{new} kernels compiled in {took:.0f} s; kept for the next process" if new else "nothing to compile")
    return new
