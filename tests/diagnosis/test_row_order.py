"""The order of rows in the file decides nothing: units and rows are sorted before any random number is drawn."""

import numpy as np
import pandas as pd
import pytest

import larl
from tests.diagnosis.logs import simulate_logs, stationary


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    logs = simulate_logs(stationary(1), 40, 11, seed=3)
    frames = [each.assign(user=number, warm=each.r > 0) for number, each in enumerate(logs)]
    return pd.concat(frames, ignore_index=True)


def results(frame: pd.DataFrame, **options: object) -> dict:
    """Return all numbers and sentences of a diagnosis, without the notes, which mention that rows were sorted."""
    values = larl.diagnose(frame, replay=False, progress=False, **options).to_dict()
    return {name: value for name, value in values.items() if name != "notes"}


@pytest.mark.parametrize("options", [{}, {"context": "warm"}], ids=["plain", "with a context"])
def test_shuffled_rows_give_the_same_diagnosis(log, options):
    expected = results(log, **options)
    assert expected["units_together"]["p_value"] is not None
    for seed in range(2):
        shuffled = log.sample(frac=1, random_state=seed)
        assert shuffled.user.iloc[0] != log.user.iloc[0] or shuffled.t.iloc[0] != log.t.iloc[0]
        assert results(shuffled, **options) == expected


def test_units_with_names_may_be_shuffled(log):
    named = log.assign(user=np.where(log.user < 10, "person " + log.user.astype(str), "éva"))
    assert results(named.sample(frac=1, random_state=5)) == results(named)
