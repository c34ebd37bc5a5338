"""Shared by all tests: a set of specs that covers every registered policy, worlds, and how to draw random ones."""

import re
from typing import Any

import hypothesis
import pytest

import larl
from larl import worlds
from larl.policies import REGISTRY, Policy
from tests.optional import pytest_runtest_setup, pytest_terminal_summary  # noqa: F401

# Tests are the same in every run and may take any time; `--hypothesis-profile=explore` tries examples that are new.
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
    larl.ChangePointThompson(memory=10),
    larl.SlidingWindowLinUCB(2, window=15),
    larl.AR2(0.9, 1.0, epoch=30),
    larl.Auto(orders=(1, 3), particles=32),
    larl.Auto(alpha=1.0, memory=20, orders=(2,), particles=16),
    larl.PredictiveSampling(),
    larl.Random(),
    larl.RoundRobin(),
    larl.KalmanOracle(),
    larl.KalmanOracle(filter="steady"),
    larl.DynamicOracle(),
]
assert {type(spec).__name__ for spec in SPECS} == set(REGISTRY), "every registered policy has a spec here"

THREE_ARMS = larl.LatentAR(
    gammas=(0.5, 0.3), beta=(-1.0, 0.4, 1.5), mu=(0.2, 0.5, -0.1), gamma0=0.3, sigma_z=0.8, sigma_r=0.7
)


@pytest.fixture(params=SPECS, ids=str)
def spec(request: pytest.FixtureRequest) -> Policy:
    return request.param


@pytest.fixture
def paper1() -> larl.LatentAR:
    return worlds.paper(1)


def group_of(nodeid: str) -> str:
    """Tests that compile the same policy belong together; any other stands alone."""
    file, _, rest = nodeid.partition("::")
    named = re.search(r"\[(\w+)\(", rest)
    if named and named.group(1) in REGISTRY:
        return named.group(1)
    homes = {"test_" + kind.__module__.rpartition(".")[2] + ".py": name for name, kind in REGISTRY.items()}
    name = file.rpartition("/")[2]
    plays_auto = name.startswith("test_diagnosis") or name in ("test_paper.py", "test_beyond.py")
    if plays_auto or (name == "test_cli.py" and "paper" in rest):  # Auto takes longest to compile
        return "Auto"
    if name == "test_browser.py":  # they look at one service
        return name
    return homes.get(name, "LARL" if "/cohort/" in file else nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker for each group: most of the time of tests is kernels being compiled, each once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
