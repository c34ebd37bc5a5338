"""Every progress bar of a successful diagnosis ends at 100%."""

import numpy as np
import pandas as pd
import pytest

import larl
from larl import diagnosis
from larl._core.progress import Progress
from larl.diagnosis import replay as replays
from tests.diagnosis.logs import simulate_logs, stationary


@pytest.fixture
def bars(monkeypatch) -> list[Progress]:
    """Return the bars that are created in the test."""
    created: list[Progress] = []

    class Recorded(Progress):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            created.append(self)

    monkeypatch.setattr(diagnosis, "Progress", Recorded)
    return created


def drifting(rows: int) -> pd.DataFrame:
    return next(simulate_logs(stationary(1), rows, 1, seed=8))


LOGS = {
    "fitted": lambda: drifting(100),
    "one arm": lambda: drifting(100).assign(a="only"),
    "more rows than guesses are compared on": lambda: drifting(450),
    "too little data": lambda: drifting(12),
    "nothing varies": lambda: pd.DataFrame({"t": range(50), "a": [0, 1] * 25, "r": [1.0, 2.0] * 25}),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_bar_of_the_fit_ends_at_100_percent(name, bars):
    larl.diagnose(LOGS[name](), replay=False, progress=False)
    assert [bar.line()[:4] for bar in bars] == ["100%"]


def test_the_bar_of_the_replay_ends_at_100_percent(bars, monkeypatch):
    for name, value in {"WORLDS": 2, "MAX_TRIALS": 4, "AUTO_STEP_BUDGET": 100, "MAX_HORIZON": 40}.items():
        monkeypatch.setattr(replays, name, value)
    result = larl.diagnose(drifting(100), progress=False)
    assert result.replay is not None
    assert np.isfinite(result.replay.log_regret).all()
    assert [bar.line()[:4] for bar in bars] == ["100%", "100%"]
