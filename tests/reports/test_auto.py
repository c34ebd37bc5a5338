"""What Auto is worth: the share closed, the worlds it is measured in, and the page."""

import numpy as np
import pytest

import larl
from larl import worlds
from larl.reports import auto as beyond
from larl.reports.auto import closed, markdown_table, places, show
from larl.reports.auto.places import BIC, KALMAN, Place, Scope
from larl.worlds import LatentAR


def test_the_share_closed_is_none_at_one_end_and_all_at_the_other():
    policies = {BIC: larl.LARLBIC(20), KALMAN: larl.KalmanOracle(), "same": larl.LARLBIC(20), "half": larl.LARL(1)}
    result = larl.compare(policies, {"it": worlds.paper(1)}, horizon=100, trials=50, seed=1)
    assert closed(result, "same", "it") == (0.0, 0.0)
    assert closed(result, KALMAN, "it").share == pytest.approx(100.0)
    total = result.total("k").sel(world="it")
    worst, best, mine = (total.sel(policy=each).values for each in (BIC, KALMAN, "half"))
    found = closed(result, "half", "it")
    assert found.share == pytest.approx(100.0 * (worst.mean() - mine.mean()) / (worst.mean() - best.mean()))
    rng = np.random.default_rng(2)  # the error by the delta method against the bootstrap
    picks = rng.integers(0, 50, size=(4000, 50))
    shares = 100.0 * (worst[picks] - mine[picks]).mean(axis=1) / (worst[picks] - best[picks]).mean(axis=1)
    assert found.error == pytest.approx(shares.std(), rel=0.25)


def test_the_test_worlds_cover_what_they_say():
    found = places.test_worlds()
    assert len(found) == 12
    kinds = [place.world for place in found.values()]
    assert {world.arms for world in kinds} == {2, 3, 4}
    assert {world.k for world in kinds} == {1, 2, 3, 6}
    assert {place.horizon for place in found.values()} == {200, 500, 2000}
    assert {world.noise for world in kinds} == {"scaled", "common"}
    assert any(min(abs(b) for b in world.beta) == 0.02 for world in kinds)
    assert len({str(world) for world in kinds}) == 12
    assert places.test_worlds() == found


def test_the_page_is_made_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    still = LatentAR((0.0,), beta=(0.0, 0.0), mu=(0.0, 0.5), noise="common")
    some = {f"k = {k}": Place(worlds.paper(k), 100, 1.0) for k in (1, 5)}
    for module in (beyond, places):
        monkeypatch.setattr(module, "paper_worlds", lambda: some | {f"{name} again": p for name, p in some.items()})
        monkeypatch.setattr(module, "LONG", 100)
    monkeypatch.setattr(beyond, "test_worlds", lambda: some)
    monkeypatch.setattr(beyond, "hard_worlds", lambda: {"still": Place(still, 100)})
    page = show(tmp_path, Scope(20, 3))
    assert (tmp_path / "auto.md").read_text() == page
    assert {file.name for file in (tmp_path / "images").iterdir()} == {
        "auto-paper.png",
        "auto-stationary.png",
        "auto-test.png",
    }
    assert "| k = 1 | 40 |" in page
    assert "nan" not in page
    stamps = {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}
    assert show(tmp_path, Scope(20, 3)) == page
    assert stamps == {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}


def test_tables_are_markdown():
    import pandas as pd

    frame = pd.DataFrame({"a": ["1"], "b": ["2"]}, index=["row"])
    assert markdown_table(frame, "name").splitlines() == ["| name | a | b |", "| --- | --- | --- |", "| row | 1 | 2 |"]
