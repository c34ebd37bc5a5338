"""The table of a Recorded world: every source gives the same world, files are checked, mistakes are named."""

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import larl
from larl.simulation.study import Study, read_study
from larl.worlds import Recorded, from_dict
from tests.worlds.test_recorded import HOLES, NAMES, ROWS, TABLE, WINDOW


def frame() -> pd.DataFrame:
    return pd.DataFrame(HOLES, columns=NAMES)


def test_every_source_of_a_table_gives_the_same_world(tmp_path: Path) -> None:
    table = frame()
    table.insert(0, "day", pd.date_range("2024-01-01", periods=ROWS))
    table["comment"] = "text"
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    wanted = Recorded(HOLES, WINDOW, columns=NAMES)
    sources = [
        table,
        pl.from_pandas(table),
        pl.from_pandas(table).lazy(),
        pa.Table.from_pandas(table),
        xr.DataArray(HOLES, dims=("time", "arm"), coords={"arm": list(NAMES)}),
        tmp_path / "t.csv",
        str(tmp_path / "t.csv.gz"),
        tmp_path / "t.parquet",
    ]
    for source in sources:
        world = Recorded(source, WINDOW)
        assert world == wanted
        assert hash(world) == hash(wanted)
        assert world.digest_fields() == wanted.digest_fields()
        assert world.columns == NAMES
    rows = [[None if np.isnan(cell) else cell for cell in row] for row in HOLES.tolist()]
    assert Recorded(rows, WINDOW, columns=NAMES) == wanted
    two = Recorded(table, WINDOW, columns=("water", "tea"))
    assert two.columns == ("water", "tea")
    np.testing.assert_array_equal(two.table.values, HOLES[:, [2, 0]])
    assert Recorded(xr.DataArray(TABLE), WINDOW) == Recorded(TABLE, WINDOW) != wanted


def test_booleans_integers_and_empty_cells_are_rewards(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\ntrue,0\nFalse,\n,1\n", encoding="utf-8")
    cells = [[1.0, 0.0], [0.0, np.nan], [np.nan, 1.0]]
    boolean = pl.DataFrame({"a": [True, False, None], "b": [0, None, 1]})
    assert Recorded(tmp_path / "t.csv", 2) == Recorded(boolean, 2) == Recorded(cells, 2, columns=("a", "b"))
    assert Recorded(np.eye(3, dtype=bool), 2) == Recorded(np.eye(3, dtype=np.int8), 2) == Recorded(np.eye(3), 2)


def test_json_pickle_and_replace(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "t.csv", index=False)
    for table in (HOLES, tmp_path / "t.csv"):
        for settings in ({"starts": (3, 1)}, {"block": 4, "noise_sd": 0.5}, {"starts": "disjoint"}):
            world = Recorded(table, WINDOW, **settings)
            assert from_dict(json.loads(json.dumps(world.to_dict(), allow_nan=False))) == world
            assert pickle.loads(pickle.dumps(world)) == world
    path = Recorded(tmp_path / "t.csv", WINDOW)
    assert len(pickle.dumps(path)) < 1000
    assert len(json.dumps(path.to_dict())) < 1000
    assert len(repr(Recorded(np.ones((500, 900)), 5))) < 200
    assert len(path._repr_html_()) < 1000


def test_changed_file_changes_the_digest_and_is_refused_by_old_specs(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "t.csv", index=False)
    before = Recorded(tmp_path / "t.csv", WINDOW)
    study = Study({"it": before}, {"UCB": larl.UCB()}, horizon=WINDOW, trials=2)
    text, packed = before.to_dict(), pickle.dumps(before)
    changed = frame()
    changed.iloc[7, 1] += 1e-9
    changed.to_csv(tmp_path / "t.csv", index=False)
    after = Recorded(tmp_path / "t.csv", WINDOW)
    assert after != before
    assert Study({"it": after}, {"UCB": larl.UCB()}, horizon=WINDOW, trials=2).digest() != study.digest()
    for load in (lambda: from_dict(text), lambda: pickle.loads(packed)):
        with pytest.raises(larl.InvalidValue, match=r"Recorded: checksum = .*the table has changed"):
            load()
    moved = tmp_path / "moved.csv"
    changed.to_csv(moved, index=False)
    assert Recorded(moved, WINDOW).digest_fields() == after.digest_fields()
    for other in (Recorded(changed, WINDOW, starts=(0,)), Recorded(changed, WINDOW + 1)):
        assert other.digest_fields() != after.digest_fields()


def test_study_file_has_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    with gzip.open(tmp_path / "data" / "t.csv.gz", "wt") as file:
        frame().to_csv(file, index=False)
    text = (
        f'horizon = {WINDOW}\ntrials = 3\n[worlds.mine]\nworld = "Recorded"\npath = "data/t.csv.gz"\n'
        f'window = {WINDOW}\ncolumns = ["tea", "water"]\nstarts = [0, 10]\n[policies.UCB]\npolicy = "UCB"\n'
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    study = read_study("../study.toml")
    assert study.worlds["mine"] == Recorded(HOLES[:, [0, 2]], WINDOW, columns=("tea", "water"), starts=(0, 10))
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(study)).worlds == study.worlds
    for old, new, message in (
        (f"horizon = {WINDOW}", "horizon = 21", r"toml:3: worlds\.mine: horizon = 21 .*at most 20, the window"),
        ("data/t.csv.gz", "data/u.csv", r"toml:\d+: worlds\.mine: Recorded: table = .*u\.csv.*does not exist"),
        ('"water"', '"milk"', r"toml:7: worlds\.mine: Recorded: columns = 'milk' .*tea, coffee, water"),
        ('world = "Recorded"', 'kind = "recorded"', r"toml:4: worlds\.mine: kind = 'recorded' .*world = \"Recorded\""),
        ('path = "data/t.csv.gz"\n', "", r"toml:3: worlds\.mine: table = None"),
    ):
        (tmp_path / "study.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(larl.InvalidValue, match=message):
            read_study("study.toml")


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (TABLE, {"window": 61}, "window = 61 .*at most 60, the rows of the table"),
        (TABLE, {"window": 0}, "window = 0"),
        (TABLE, {"block": 61}, "block = 61 .*at most 60"),
        (TABLE, {"block": 4, "starts": "disjoint"}, "starts = 'disjoint' .*'random', because the blocks"),
        (TABLE, {"starts": (41,)}, r"starts\[0\] = 41 .*from 0 to 40"),
        (TABLE, {"starts": ()}, r"starts = \(\) .*one or more"),
        (TABLE, {"starts": "first"}, "starts = 'first' .*'random', 'disjoint', or one or more"),
        (TABLE, {"starts": 3}, "starts = 3"),
        (TABLE, {"noise_sd": -1.0}, "noise_sd = -1.0"),
        (TABLE, {"columns": ("a", "b")}, "columns = .*3 names, one for each column"),
        (TABLE, {"columns": "abc"}, "columns = 'abc' .*two or more names"),
        (TABLE, {"columns": ("a", "a", "b")}, "columns = .*different names"),
        (frame(), {"columns": ("tea", "milk")}, "columns = 'milk' .*tea, coffee, water"),
        (TABLE[:, :1], {}, "table = .*2 or more columns"),
        (TABLE[:, 0], {}, "table = .*time × arms"),
        (np.where(TABLE > 2, np.inf, TABLE), {}, r"table, row \d+, column '\d' = inf .*a finite number"),
        (np.where(TABLE > 2, 1e200, TABLE), {}, "= 1e.200 .*a finite number"),
        (np.where(np.arange(3) == 1, np.nan, TABLE), {}, "column '1' = 'no reward'"),
        ([["a", "b"]], {}, "table = .*time × arms"),
        (7, {}, "table = 7 .*time × arms"),
        (xr.DataArray(TABLE[:, 0]), {}, "table = .*two dimensions"),
        (pd.DataFrame({"a": [1.0, 2.5], "b": ["x", "y"]}), {"window": 1}, "table = .*2 or more columns of numbers"),
        (
            pd.DataFrame({"a": [1.0, 2.5], "b": ["1", "y"]}),
            {"window": 1, "columns": ("a", "b")},
            "row 2, column 'b' = 'y'",
        ),
        (
            pd.DataFrame({"a": [1.0, 2.5], "b": ["1", "y"], "c": [3.0, 1.0]}),
            {"window": 1},
            "row 2, column 'b' = 'y' .*like other cells of the column",
        ),
        (frame().assign(year=np.arange(ROWS)), {}, "columns = None .*column 'year' rises evenly"),
        (
            frame().assign(at=pd.date_range("2024", periods=ROWS)),
            {"columns": ("at", "tea")},
            "columns = 'at' .*datetime",
        ),
        (pd.concat([frame(), frame()], axis=1), {}, "table = .*different names"),
    ],
)
def test_invalid_value_names_field_and_value(table: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(larl.InvalidValue, match=f"Recorded: .*{message}"):
        Recorded(table, **({"window": WINDOW} | settings))
