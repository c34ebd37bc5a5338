"""Shared by all tests: a set of specs that covers every registered policy, worlds, and how to draw random ones."""

import pytest

import larl
from larl import worlds
from larl.policies import REGISTRY, Policy

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one policy go to one worker (`--dist loadgroup`): most of their time is its kernels being compiled."""
    files = {"test_" + kind.__module__.rpartition(".")[2]: name for name, kind in REGISTRY.items()}
    for item in items:
        spec = item.callspec.params.get("spec") if hasattr(item, "callspec") else None
        stem, folder = item.path.stem, item.path.parent.name
        group = type(spec).__name__ if isinstance(spec, Policy) else files.get(stem)
        if group is None and (folder == "cohort" or stem in ("test_context", "test_tiles", "test_standard")):
            group = "LARL"
        if group is None and stem.startswith("test_diagnosis"):
            group = "diagnosis"
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
