"""Studies from TOML: read whole, refused with file, table and key."""

from pathlib import Path

import numpy as np
import pytest

import larl
from larl import worlds
from larl.study import read_study

EXAMPLE = Path(__file__).parents[1] / "examples" / "study.toml"
FINE = """
horizon = 20
trials = 3
[worlds.w]
paper = 1
[policies.p]
policy = "LARL"
s = 1
"""


def study(tmp_path: Path, text: str):
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_the_example_reads_as_it_says():
    example = read_study(EXAMPLE)
    assert (example.horizon, example.trials, example.seed, example.keep) == (200, 1000, 0, "all")
    assert example.worlds["slow drift"] == larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
    assert example.worlds["paper, k = 5"] == worlds.paper(5)
    assert example.worlds["3 random arms"] == worlds.random(2, 3, 0, radius=0.9)
    base = larl.LatentAR(gammas=[0.9], beta=[-1, 1], mu=[0, 0])
    assert example.worlds["heavy tails"] == larl.variants.HeavyTails(base, df=3.0)
    two = larl.LatentVAR([[[0.8, 0.2], [-0.2, 0.8]]], [[1, 0], [0, 1], [-1, -1]], [0, 0, 0])
    assert example.worlds["two hidden components"] == two
    assert example.policies["LARL, s = 5"] == larl.LARL(5)
    assert example.policies["Kalman"] == larl.KalmanOracle()


@pytest.mark.parametrize(
    ("start", "expected"),
    [("{mean = 1, sd = 2}", larl.Normal(1.0, 2.0)), ("{mean = [1], cov = [[4]]}", larl.JointNormal([1.0], [[4.0]]))],
)
def test_starts(tmp_path, start, expected):
    world = f"gammas = [0.5]\nbeta = [1, 2]\nmu = [0, 0]\nstart = {start}"
    assert study(tmp_path, FINE.replace("paper = 1", world)).worlds["w"].start == expected


def test_it_runs_as_compare_does(tmp_path):
    result = study(tmp_path, FINE).run()
    same = larl.compare({"p": larl.LARL(1)}, {"w": worlds.paper(1)}, horizon=20, trials=3)
    assert np.array_equal(result.regret, same.regret)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("horizon = 20", "", ["horizon", "no default"]),
        ("horizon = 20", "horizon = 0", ["horizon = 0", "from 1 to"]),
        ("horizon = 20", "horizon = '20'", ["horizon = '20'"]),
        ("trials = 3", "trials = 3\nrepeats = 4", ["repeats = 4", "horizon"]),
        ("paper = 1", "paper = 3", ["worlds.w", "k = 3", "1, 5 or 10"]),
        ("paper = 1", "paper = [1]", ["worlds.w", "1, 5 or 10"]),
        ("paper = 1", "paper = 1\nrandom = {k = 1, arms = 2, seed = 0}", ["nothing beside"]),
        ("horizon = 20", "horizon = 1_000_000_000_000_000", ["horizon", "from 1 to"]),
        ("paper = 1", "paper = 1\nmu = [0, 0]", ["worlds.w", "mu", "nothing beside"]),
        ("paper = 1", "random = {k = 1}", ["worlds.w", "random", "arms = …"]),
        ("paper = 1", "random = {k = 1, arms = 2, seed = 0, size = 3}", ["random.size = 3"]),
        ("paper = 1", "gammas = [0.5]\nbeta = [1, 2]", ["worlds.w", "mu", "no default"]),
        ("paper = 1", "gammas = [0.5]\nbeta = [1, 2]\nmu = [0, 0]\nstart = {sd = 1, var = 1}", ["start", "var = 1"]),
        ("paper = 1", 'world = "Winter"', ["worlds.w", "world = 'Winter'", "Seasonal"]),
        ("paper = 1", 'world = "ChangePoints"\nperiod = 3', ["worlds.w", "period = 3", "hazard"]),
        ("paper = 1", 'world = "HeavyTails"\nbase = {gammas = [0.5]}', ["worlds.w.base", "beta"]),
        ("paper = 1", "gammas = [1.5]\nbeta = [1, 2]\nmu = [0, 0]", ["gammas", "spectral radius"]),
        ('policy = "LARL"', 'policy = "LRAL"', ["policies.p", "policy = 'LRAL'", "LARLBIC"]),
        ('policy = "LARL"', "", ["policies.p", "policy = None"]),
        ("s = 1", "s = 1\nalfa = 2", ["policies.p", "alfa = 2", "alpha"]),
        ("s = 1", "s = -1", ["policies.p", "s = -1", "≥ 0"]),
        ("[policies.p]", "[policies]", ["policies", "a table"]),
        ("[worlds.w]", "[worlds.w", ["TOML", "line 4"]),
    ],
)
def test_refused_with_place_and_value(tmp_path, old, new, words):
    assert old in FINE
    with pytest.raises(larl.InvalidValue) as refusal:
        study(tmp_path, FINE.replace(old, new))
    for word in words:
        assert word in str(refusal.value)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(larl.InvalidValue, match=r"nothing\.toml"):
        read_study(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(larl.InvalidValue, match=r"bytes\.toml"):
        read_study(tmp_path / "bytes.toml")
