"""Shared by all tests: specs of every registered policy, a world, and the distribution of tests over workers."""

import gc
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

# Threads of OpenBLAS that wait for each other keep all processors busy: small matrices take up to ten times as long if
# several workers run. It reads this when NumPy is imported; workers and other processes inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

import larl
from larl import worlds
from larl.policies import REGISTRY, Policy
from tests.optional import pytest_runtest_setup, pytest_terminal_summary  # noqa: F401

# Tests use the same examples in every run, without a deadline; `--hypothesis-profile=explore` tries new examples.
hypothesis.settings.register_profile(
    "explore", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("repeat", hypothesis.settings.get_profile("explore"), derandomize=True)
hypothesis.settings.load_profile("repeat")

SPECS: list[Policy] = [
    larl.LARL(0),
    larl.LARL(1),
    larl.LARL(3, alpha=0.5, ridge=2.0),
    larl.LARL(2, radius="theory"),
    larl.LARL(1, standardise=True),
    larl.LARLBIC(20, s_max=4),
    larl.LARLBIC(21, s_max=4, explore_with="alternate"),
    larl.CohortLARL(s=3),
    larl.CohortAuto(),
    larl.AdaptiveLARL(),
    larl.AdaptiveLARL(2, alpha=0.5),
    larl.SharedLARL(),
    larl.SharedLARL(2, window=15, modes=2),
    larl.UCB(),
    larl.ARUCB(2),
    larl.ARUCB(1, radius="theory"),
    larl.SlidingWindowUCB(12),
    larl.DiscountedUCB(0.9),
    larl.Exp3(0.2, (-5.0, 5.0)),
    larl.Rexp3(20.0, (-5.0, 5.0)),
    larl.ThompsonSampling(),
    larl.DiscountedThompson(0.9),
    larl.SlidingWindowThompson(8),
    larl.BetaThompson(),
    larl.DiscountedBetaThompson(0.9, (0.5, 2.0), (-3.0, 3.0)),
    larl.SlidingWindowBetaThompson(8, reward_range=(-3.0, 3.0)),
    larl.KLUCB(),
    larl.DiscountedKLUCB(0.9, 3.0, (-3.0, 3.0)),
    larl.ChangePointThompson(memory=10),
    larl.ResetThompson(memory=5),
    larl.CUSUMUCB(reference=5, threshold=3.0),
    larl.GLRklUCB(delta=0.5, memory=10),
    larl.GLRklUCB(alpha=0.2, restart="local", rewards="bernoulli", memory=20, every=2),
    larl.MUCB(window=4, threshold=1.5, gamma=0.2),
    larl.SlidingWindowLinUCB(2, window=15),
    larl.DiscountedLinUCB(2, 0.9),
    larl.AR2(0.9, 1.0, epoch=30),
    larl.Auto(orders=(1, 3), particles=32),
    larl.Auto(alpha=1.0, memory=20, orders=(2,), particles=16),
    larl.PredictiveSampling(),
    larl.Random(),
    larl.RoundRobin(),
    larl.LatentThompson(((0.8, 0.2), (0.3, 0.7)), ((0.0, 1.0, 0.5), (1.0, -1.0, 0.8)), 1.0),
    larl.ParticleLatentThompson(particles=12),
    larl.BeliefLinUCB(),
    larl.BeliefLinUCB(
        model="given",
        transition=((0.8, 0.2), (0.3, 0.7)),
        means=((0.0, 1.0, 0.5), (1.0, -1.0, 0.8)),
        sigma_r=1.0,
    ),
    larl.MarkovOracle(),
    larl.FilterOracle(particles=40),
    larl.KalmanOracle(),
    larl.KalmanOracle(filter="steady"),
    larl.KalmanUCB(0.5),
    larl.DynamicOracle(),
]
assert {type(spec).__name__ for spec in SPECS} == set(REGISTRY), "every registered policy has a spec here"

THREE_ARMS = larl.LatentAR(
    gammas=(0.5, 0.3), beta=(-1.0, 0.4, 1.5), mu=(0.2, 0.5, -0.1), gamma0=0.3, sigma_z=0.8, sigma_r=0.7
)
THREE_ARMS_MARKOV = worlds.random_markov(states=2, arms=3, seed=0)
THREE_ARMS_GLM = worlds.LatentGLM(gammas=(0.5, 0.3), beta=(-1.0, 0.4, 1.5), mu=(0.2, 0.5, -0.1), family="poisson")


def world_of(spec: Policy) -> worlds.World:
    """A world with three arms whose parameters the policy can use."""
    special = {larl.MarkovOracle: THREE_ARMS_MARKOV, larl.FilterOracle: THREE_ARMS_GLM}
    return special.get(type(spec), THREE_ARMS)


@pytest.fixture(params=SPECS, ids=str)
def spec(request: pytest.FixtureRequest) -> Policy:
    return request.param


@pytest.fixture
def paper1() -> larl.LatentAR:
    return worlds.paper(1)


ROOT = Path(__file__).parents[1]
SAME_STATE = {"DiscountedThompson": "ThompsonSampling", "Rexp3": "Exp3"}  # policies with the kernels of another
# Their tests take seconds to minutes each, most of it in other processes.
SLOW_FILES = (
    "tests/cli/",
    "tests/core/test_compile.py",
    "tests/core/test_numba_parts.py",
    "tests/reports/",
    "tests/service/test_crash.py",
    "tests/service/test_failover.py",
    "tests/service/test_torture.py",
    "tests/simulation/test_executors.py",
    "tests/simulation/test_precompile.py",
    "tests/test_docs.py",
    "tests/test_notebooks.py",
)


@cache
def shares_fixtures(file: str) -> bool:
    """Return whether the tests of a file share a service, a browser, kernels or anything else that takes long."""
    text = (ROOT / file).read_text("utf-8")
    return file.rpartition("/")[2].startswith("test_browser") or 'scope="module"' in text or "import kernel" in text


@cache
def policy_of_file() -> dict[str, str]:
    """Return the policy of each file in tests/policies that tests one policy, by the name of the file."""
    modules = {name: kind.__module__.removesuffix(".policy").rpartition(".")[2] for name, kind in REGISTRY.items()}
    return {f"test_{module}.py": name for name, module in modules.items()}


def group_of(nodeid: str) -> str:
    """The group of a test: the policy that it compiles, the file with which it shares fixtures, or the test itself."""
    file, _, rest = nodeid.partition("::")
    parameter = re.search(r"\[(\w+)[(-]", rest)
    if parameter and parameter.group(1) in REGISTRY:
        return SAME_STATE.get(parameter.group(1), parameter.group(1))
    folder, _, name = file.rpartition("/")
    if folder == "tests/policies" and name in policy_of_file():
        return policy_of_file()[name]
    if name == "test_pooled_auto.py":
        return "CohortAuto"
    if name.startswith(("test_cohort", "test_pooling")):
        return "LARL"
    if name.startswith("test_auto_"):
        return "Auto"
    if shares_fixtures(file):
        return file
    return "diagnosis" if "/diagnosis/" in file else nodeid  # these tests share the kernels of the fit


def pytest_collection_finish() -> None:
    """Collect garbage less often: the compiler creates millions of objects, and a seventh of its time is the search."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start slow tests before quick ones if several workers run, so that all workers end at about the same time."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(SLOW_FILES))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run each group on one worker: most time is spent on compiling kernels, and each is compiled once.

    Groups with most tests, which are those of policies, start first.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
