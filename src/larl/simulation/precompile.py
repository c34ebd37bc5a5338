"""Compile kernels ahead of time: `larl precompile`, for a container image or a server."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from types import FunctionType
from typing import Any

from larl import worlds
from larl._core import compile as _compile
from larl._core.kernel_cache import reachable
from larl._core.states import nested
from larl._core.validation import InvalidValue
from larl.live.agent import Agent
from larl.live.cohort import Cohort
from larl.policies import REGISTRY, UCB, FilterOracle, MarkovOracle, Policy, RoundRobin
from larl.policies._entry import Handle
from larl.policies._pooling import POOLINGS, pooled_state
from larl.simulation.compare import compare
from larl.simulation.tasks import default_threads

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


def states_of(name: str) -> list[Any]:
    """Return one State of each type that a policy has, also in cohorts."""
    states = []
    for spec in specs(name):
        world = example_world(spec)
        state = spec.init(world.arms, horizon=HORIZON, world=world)
        for pooling in POOLINGS:
            with suppress(InvalidValue):  # the policy does not support it
                states.append(pooled_state(spec, state, pooling))
    return states


def compile_common() -> None:
    """Compile what all policies use: simulations, agents, cohorts and the worlds of `example_world`."""
    policy = RoundRobin()
    for world in (worlds.paper(1), worlds.random_markov(2, 2, 0), worlds.binary()):
        compare({"it": policy}, world, horizon=4, trials=1, threads=1, progress=False)
    compare({"it": UCB()}, worlds.paper(1), horizon=4, trials=1, units=2, pooling="full", threads=1, progress=False)
    for cohort in (Cohort(UCB(), 2), Cohort(UCB(), 2, pooling="full")):
        for _ in range(2):
            cohort.observe(cohort.decide("unit"), 1.0)
    agent = Agent(policy, 2)
    agent.observe(agent.decide(), 1.0)
    agent.observe(agent.decide(), None)


def compile_policy(name: str) -> float:
    """Compile a policy; return the seconds that it took, 0 if it was compiled before."""
    started, _compile.compilations.quiet = time.monotonic(), True
    before = len(_compile.compilations.names)
    for state in states_of(name):
        Handle.of(state, 0)
    return time.monotonic() - started if len(_compile.compilations.names) > before else 0.0


def amount_of_code(name: str) -> int:
    """Return the bytes of the code that a policy can reach: the longest are compiled first."""
    classes = {type(each).__name__: type(each) for state in states_of(name) for each in nested(state)}
    generics = [(each.__name__, each) for each in _compile.GENERICS]
    return sum(
        len(value.__code__.co_code)
        for _, value in reachable([*generics, *classes.items()])
        if isinstance(value, FunctionType)
    )


def precompile(names: Iterable[str] = (), report: Callable[[str], None] = print) -> int:
    """Compile the named policies, or all, in as many processes as there are cores; return the number of new ones."""
    selected = list(names) or sorted(REGISTRY)
    for name in selected:
        if name not in REGISTRY:
            raise InvalidValue("larl precompile", "name", name, ", ".join(sorted(REGISTRY)))
    started, total = time.monotonic(), 0
    _compile.compilations.quiet = True
    try:
        compile_common()
        with ExitStack() as stack:
            if len(selected) == 1:
                results: Iterable[tuple[str, float]] = ((each, compile_policy(each)) for each in selected)
            else:
                context = get_context("spawn")
                pool = stack.enter_context(ProcessPoolExecutor(default_threads(), mp_context=context))
                longest_first = sorted(selected, key=amount_of_code, reverse=True)
                tasks = {pool.submit(compile_policy, name): name for name in longest_first}
                results = ((tasks[task], task.result()) for task in as_completed(tasks))
            for number, (name, seconds) in enumerate(results, 1):
                total += seconds > 0.0
                status = f"compiled in {seconds:.1f} s" if seconds > 0.0 else "already compiled"
                report(f"{number:{len(str(len(selected)))}d}/{len(selected)}  {name}: {status}")
    finally:
        _compile.compilations.quiet = False
    done = f"{total} polic{'y' if total == 1 else 'ies'} compiled in {time.monotonic() - started:.0f} s and cached"
    report(done if total else "nothing to compile")
    return total
