"""Studies from TOML: read whole, refused with file, table and key."""

from pathlib import Path

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation.study import read_study
from larl.simulation.tables import grid_points

EXAMPLE = Path(larl.__file__).parent / "examples" / "study.toml"
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
    assert example.worlds["heavy tails"] == larl.worlds.HeavyTails(base, df=3.0)
    two = larl.LatentVAR([[[0.8, 0.2], [-0.2, 0.8]]], [[1, 0], [0, 1], [-1, -1]], [0, 0, 0])
    assert example.worlds["two hidden components"] == two
    assert example.policies["LARL, s = 5"] == larl.LARL(5)
    assert example.policies["LARL s=3 alpha=0.5"] == larl.LARL(3, 0.5)
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


NESTED = """# line 1
horizon = 20
trials = 3

[worlds."k = 1"]
world = "HeavyTails"
base = {gammas = [0.9], mu = [0.0,
  0.0], beta = [-1.0, 1.0]}
df = 3.0

[worlds.random]
random = {k = 2, arms = 3, seed = 0}

[policies."LARL, small"]
policy = "LARL"
grid = {s = [1, 2], alpha = [0.5, 1.0]}

[policies.UCB]
policy = "UCB"
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("horizon = 20", "horizon = -1", 2, ["horizon = -1", "from 1 to"]),
        ("horizon = 20", "horizon = 2.5", 2, ["horizon = 2.5", "a whole number"]),
        ("trials = 3", "", 1, ["trials", "no default"]),
        ("trials = 3", "trials = 3\nrepeats = 1", 4, ["repeats = 1", "only the keys worlds, policies"]),
        ("trials = 3", "trials = 3\ncandidates = {}", 4, ["candidates = {}", "only the keys"]),
        ("df = 3.0", "df = 1.0", 9, ["worlds.k = 1", "df = 1.0", "> 2"]),
        ("df = 3.0", "dof = 3.0", 9, ["dof = 3.0", "base, df"]),
        ("gammas = [0.9]", "gammas = [1.9]", 7, ["gammas", "spectral radius"]),
        ("beta = [-1.0, 1.0]", "beta = [-1.0, 'x']", 8, ["beta[1] = 'x'", "finite number"]),
        ("arms = 3", "arms = 0", 12, ["worlds.random", "arms = 0"]),
        ("arms = 3", "size = 3", 12, ["worlds.random", "arms = …"]),
        ("[1, 2]", "[1, -2]", 16, ["policies.LARL, small", "s = -2", "≥ 0"]),
        ("[1, 2]", "[1, 1]", 16, ["s = [1, 1]", "different values"]),
        ("[1, 2]", "[]", 16, ["s = []", "one or more"]),
        ("[1, 2]", "1", 16, ["s = 1", "a list"]),
        ("alpha = [", "alfa = [", 16, ["alfa = 0.5", "alpha"]),
        ("{s = [1, 2], alpha = [0.5, 1.0]}", "{}", 16, ["grid = {}", "a list of values"]),
        ('policy = "LARL"', 'policy = "LARL"\ns = 3', 16, ["s = 3", "either here or in the grid"]),
        ("[policies.UCB]", '[policies."LARL, small s=1 alpha=0.5"]', 16, ["different names"]),
        ('policy = "UCB"', 'policy = "ARUCB"', 18, ["policies.UCB", "order", "no default"]),
        ('policy = "UCB"', 'policy = "KalmanOracle"\nfilter = "other"', 20, ["filter = 'other'"]),
        ('policy = "UCB"', 'policy = "AR2"\nalpha = 0.9\nsigma = 1.0\nepoch = 0', 22, ["epoch = 0"]),
    ],
)
def test_refused_with_file_and_line(tmp_path, old, new, line, words):
    assert old in NESTED
    with pytest.raises(larl.InvalidValue) as refusal:
        study(tmp_path, NESTED.replace(old, new))
    assert f"study.toml:{line}: " in str(refusal.value)
    for word in words:
        assert word in str(refusal.value)


def test_what_cannot_be_built_is_refused_with_its_line(tmp_path):
    uneven = 'gammas = [0.8]\nbeta = [0.5, 1.0]\nmu = [0, 0]\nnoise = "common"'
    text = FINE.replace("paper = 1", uneven) + '[policies.oracle]\npolicy = "KalmanOracle"\nfilter = "steady"\n'
    with pytest.raises(larl.InvalidValue, match=r"study\.toml:12: policies\.oracle: .*steady"):
        study(tmp_path, text)


def test_a_grid_is_every_combination_by_name(tmp_path):
    found = study(tmp_path, NESTED)
    expected = {f"LARL, small s={s} alpha={alpha}": larl.LARL(s, alpha) for s in (1, 2) for alpha in (0.5, 1.0)}
    assert dict(found.policies) == expected | {"UCB": larl.UCB()}
    assert list(found.policies) == [*expected, "UCB"]
    assert found.candidates["LARL, small s=2 alpha=0.5"] == ("LARL, small", {"s": 2, "alpha": 0.5})
    assert "UCB" not in found.candidates


def test_the_result_remembers_the_grid(tmp_path):
    result = study(tmp_path, NESTED).run(threads=1)
    kept = larl.load(result.save(tmp_path / "it.nc"))
    assert grid_points(kept)["LARL, small s=1 alpha=1.0"] == {
        "grid": "LARL, small",
        "parameters": {"s": 1, "alpha": 1.0},
    }
