"""The simulated scheduler of benchmarks/scale.py in limiting cases with a known result."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "scale.py"


@pytest.fixture(scope="module")
def simulate():
    spec = importlib.util.spec_from_file_location("scale_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.simulate


def test_time_is_limited_by_cores(simulate):
    assert simulate(10, [1.0] * 100, 0.0, 0.0) == pytest.approx(10.0)
    assert simulate(1, [1.0, 2.0, 3.0], 0.0, 0.0) == pytest.approx(6.0)
    assert simulate(200, [1.0] * 100, 0.0, 0.0) == pytest.approx(1.0)


def test_time_is_limited_by_the_scheduler(simulate):
    assert simulate(10, [1.0] * 100, 0.5, 0.0) == pytest.approx(100 * 0.5 + 1.0)


def test_time_is_limited_by_the_link(simulate):
    assert simulate(10, [1.0] * 100, 0.0, 0.3) == pytest.approx(1.0 + 100 * 0.3)


def test_one_core_waits_for_the_scheduler_only_once(simulate):
    assert simulate(1, [1.0] * 100, 0.5, 0.0) == pytest.approx(100.5)
