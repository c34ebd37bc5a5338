"""Studies from TOML files; errors name file, line, table and key."""

from pathlib import Path

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation import tasks
from larl.simulation.study import read_study
from larl.simulation.tables import grid_points

EXAMPLE = Path(larl.__file__).parent / "examples" / "study.toml"
VALID = """
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


def test_example_has_the_values_of_its_comments():
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
def test_start_is_a_normal_or_joint_normal(tmp_path, start, expected):
    world = f"gammas = [0.5]\nbeta = [1, 2]\nmu = [0, 0]\nstart = {start}"
    assert study(tmp_path, VALID.replace("paper = 1", world)).worlds["w"].start == expected


def test_run_equals_compare(tmp_path):
    result = study(tmp_path, VALID).run()
    same = larl.compare({"p": larl.LARL(1)}, {"w": worlds.paper(1)}, horizon=20, trials=3)
    assert np.array_equal(result.regret, same.regret)


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("horizon = 20", "", ["horizon", "no default"]),
        ("horizon = 20", "horizon = 0", ["horizon = 0", "from 1 to"]),
        ("horizon = 20", "horizon = '20'", ["horizon = '20'"]),
        ("trials = 3", "trials = 3\nrepeats = 4", ["repeats = 4", "horizon"]),
        ("paper = 1", "paper = 3", ["worlds.w", "k = 3", "1, 5 or 10"]),
        ("paper = 1", "paper = [1]", ["worlds.w", "1, 5 or 10"]),
        ("paper = 1", "paper = 1\nrandom = {k = 1, arms = 2, seed = 0}", ["no other key beside"]),
        ("horizon = 20", "horizon = 1_000_000_000_000_000", ["horizon", "from 1 to"]),
        ("paper = 1", "paper = 1\nmu = [0, 0]", ["worlds.w", "mu", "no other key beside"]),
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
def test_error_names_table_key_and_value(tmp_path, old, new, messages):
    assert old in VALID
    with pytest.raises(larl.InvalidValue) as refusal:
        study(tmp_path, VALID.replace(old, new))
    for message in messages:
        assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("world", "table"),
    [
        ('world = "Varied"', "worlds.w"),
        ('world = "HeavyTails"\ndf = 3.0\nbase = {world = "Varied"}', "worlds.w.base"),
    ],
)
def test_old_name_of_a_world_is_refused_with_the_new_one(tmp_path, world, table):
    with pytest.raises(larl.InvalidValue) as refusal:
        study(tmp_path, VALID.replace("paper = 1", world))
    assert f"{table}: world = 'Varied' is not usable; accepted: its new name 'HeterogeneousUnits'" in str(refusal.value)


def test_digest_depends_on_settings_and_code_versions(tmp_path, monkeypatch):
    first = study(tmp_path, VALID).digest()
    assert study(tmp_path, VALID).digest() == first
    assert study(tmp_path, VALID.replace("trials = 3", "trials = 4")).digest() != first
    versions = tasks.code_versions() | {"numpy": "0.0"}
    monkeypatch.setattr(tasks, "_package_versions", lambda: versions)
    assert study(tmp_path, VALID).digest() != first


def test_huge_grid_is_refused_with_its_size_before_it_is_expanded(tmp_path):
    values = ", ".join(f"{1.0 + i}" for i in range(2000))
    text = NESTED.replace("alpha = [0.5, 1.0]", f"alpha = [{values}], ridge = [{values}]")
    with pytest.raises(larl.InvalidValue, match=r"study\.toml:16: .*grid = '8,000,000 combinations'.* at most 10,000"):
        study(tmp_path, text)


@pytest.mark.parametrize("key", ["horizon = ", "a = "])
def test_deeply_nested_file_is_refused_with_its_line(tmp_path, key):
    for opened in ("[", "{a = "):
        with pytest.raises(larl.InvalidValue, match=r"study\.toml:2: .*nested at most 100 deep"):
            study(tmp_path, f"# line 1\n{key}{opened * 5000}")


def test_unreadable_file_is_refused(tmp_path):
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
    ("old", "new", "line", "messages"),
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
def test_error_names_file_and_line(tmp_path, old, new, line, messages):
    assert old in NESTED
    with pytest.raises(larl.InvalidValue) as refusal:
        study(tmp_path, NESTED.replace(old, new))
    assert f"study.toml:{line}: " in str(refusal.value)
    for message in messages:
        assert message in str(refusal.value)


def test_impossible_policy_is_refused_with_its_line(tmp_path):
    uneven = 'gammas = [0.8]\nbeta = [0.5, 1.0]\nmu = [0, 0]\nnoise = "common"'
    text = VALID.replace("paper = 1", uneven) + '[policies.oracle]\npolicy = "KalmanOracle"\nfilter = "steady"\n'
    with pytest.raises(larl.InvalidValue, match=r"study\.toml:12: policies\.oracle: .*steady"):
        study(tmp_path, text)


def test_grid_is_every_combination(tmp_path):
    read = study(tmp_path, NESTED)
    expected = {f"LARL, small s={s} alpha={alpha}": larl.LARL(s, alpha) for s in (1, 2) for alpha in (0.5, 1.0)}
    assert dict(read.policies) == expected | {"UCB": larl.UCB()}
    assert list(read.policies) == [*expected, "UCB"]
    assert read.candidates["LARL, small s=2 alpha=0.5"] == ("LARL, small", {"s": 2, "alpha": 0.5})
    assert "UCB" not in read.candidates


def test_result_file_keeps_the_grid(tmp_path):
    result = study(tmp_path, NESTED).run(threads=1)
    loaded = larl.load(result.save(tmp_path / "result.nc"))
    assert grid_points(loaded)["LARL, small s=1 alpha=1.0"] == {
        "grid": "LARL, small",
        "parameters": {"s": 1, "alpha": 1.0},
    }
