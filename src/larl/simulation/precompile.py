"""Compile kernels ahead of time: `larl precompile`, for a container image or a server."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from larl import worlds
from larl._core import compile as _compile
from larl._core.validation import InvalidValue
from larl.live.agent import Agent
from larl.live.cohort import Cohort
from larl.policies import REGISTRY, DynamicOracle, FilterOracle, MarkovOracle, Policy
from larl.policies._pooling import PARTIAL_STATES
from larl.simulation.compare import compare

HORIZON = 60
CHAIN: dict[str, Any] = {"transition": ((0.9, 0.1), (0.1, 0.9)), "means": ((0.0, 1.0), (1.0, 0.0)), "sigma_r": 1.0}
# Parameters of each policy that has required ones; one set for each type of State.
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "AR2": ({"alpha": 0.9, "sigma": 1.0},),
    "ARUCB": ({"order": 1},),
    "CUSUMUCB": ({}, {"standardise": True}),
    "DiscountedLinUCB": ({"s": 1, "discount": 0.9}, {"s": 1, "discount": 0.9, "standardise": True}),
    "BeliefLinUCB": ({}, {"model": "given"} | CHAIN),
    "DiscountedBetaThompson": ({"discount": 0.9},),
    "DiscountedKLUCB": ({"discount": 0.9},),
    "DiscountedThompson": ({"discount": 0.9},),
    "DiscountedUCB": ({"discount": 0.9}, {"discount": 0.9, "standardise": True}),
    "GLRklUCB": ({}, {"standardise": True}),
    "KalmanOracle": ({}, {"filter": "steady"}),
    "LatentThompson": (CHAIN,),
    "LARL": ({"s": 1}, {"s": 1, "radius": "theory"}, {"s": 1, "standardise": True}),
    "LARLBIC": ({"explore": 40},),
    "MUCB": ({}, {"standardise": True}),
    "ParticleLatentThompson": ({}, {"standardise": False}),
    "Rexp3": ({"variation": 10.0},),
    "SlidingWindowBetaThompson": ({"window": 20},),
    "SlidingWindowLinUCB": ({"s": 1, "window": 20},),
    "SlidingWindowThompson": ({"window": 20},),
    "SlidingWindowUCB": ({"window": 20}, {"window": 20, "standardise": True}),
    "UCB": ({}, {"standardise": True}),
}


def specs(name: str) -> list[Policy]:
    """Return one policy for each type of State of the class with this name."""
    return [REGISTRY[name](**settings) for settings in SETTINGS.get(name, ({},))]


def example_world(spec: Policy) -> worlds.World:
    """Return a world with two arms whose parameters the policy can use."""
    if isinstance(spec, MarkovOracle):
        return worlds.random_markov(2, 2, 0)
    return worlds.binary() if isinstance(spec, FilterOracle) else worlds.paper(1)


def precompile_policy(spec: Policy) -> None:
    """Compile what a comparison, an agent or a cohort of a policy needs in a `LatentAR` or `LatentVAR`.

    A `MarkovOracle` is compiled for a `LatentMarkov`, a `FilterOracle` for a `LatentGLM`.
    """
    world = example_world(spec)
    for keep in ("all", "summary"):
        compare({"policy": spec}, world, horizon=HORIZON, trials=1, keep=keep, threads=1, progress=False)
    if not isinstance(spec, DynamicOracle):
        for warm_up in (0, 1):  # agents with a warm-up or an allocation choose by another kernel
            Agent(spec, world.arms, horizon=HORIZON, world=world, warm_up=warm_up)
    if type(spec.init(world.arms, horizon=HORIZON, world=world)) in PARTIAL_STATES:
        for pooling in ("full", "partial"):
            compare({"policy": spec}, world, horizon=2, trials=1, units=2, pooling=pooling, threads=1, progress=False)
            Cohort(spec, world.arms, pooling=pooling)


def precompile(names: Iterable[str] = (), report: Callable[[str], None] = print) -> int:
    """Compile the kernels of the named policies, or of all, report each, and return the number of new kernels."""
    selected = list(names) or sorted(REGISTRY)
    for name in selected:
        if name not in REGISTRY:
            raise InvalidValue("larl precompile", "name", name, ", ".join(sorted(REGISTRY)))
    compilations, started = _compile.compilations, time.monotonic()
    count_before, compilations.quiet = compilations.count, True
    try:
        for number, name in enumerate(selected, 1):
            count, policy_started = compilations.count, time.monotonic()
            for spec in specs(name):
                precompile_policy(spec)
            seconds, new = time.monotonic() - policy_started, compilations.count - count
            status = f"{new} kernels compiled in {seconds:.1f} s" if new else "already compiled"
            report(f"{number:{len(str(len(selected)))}d}/{len(selected)}  {name}: {status}")
    finally:
        compilations.quiet = False
    new, seconds = compilations.count - count_before, time.monotonic() - started
    report(f"{new} kernels compiled in {seconds:.0f} s and cached" if new else "nothing to compile")
    return new
