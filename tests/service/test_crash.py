"""Kill the service once or a few times under load; `python -m tests.service.crash_test` does it hundreds of times."""

from pathlib import Path

import pytest

from tests.service.crash_test import Summary, run

pytestmark = pytest.mark.timing


def _check(summary: Summary) -> None:
    print(summary.line())
    assert summary.is_correct, (summary.line(), summary.examples)
    assert summary.acknowledged > 0
    assert summary.retried > 0 or summary.kills < 4, "no kill came between a request and its response"


@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.long)])
def test_killed_service_loses_no_acknowledged_response(kills: int, sqlite: str, tmp_path: Path) -> None:
    _check(run(sqlite, tmp_path, kills, seed=1))


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.long)])
def test_two_processes_that_are_killed_lose_no_acknowledged_response(kills: int, postgres: str, tmp_path: Path) -> None:
    _check(run(postgres, tmp_path, kills, seed=2, processes=2))
