"""Studies on a cluster and in stores: the same bytes wherever and however often they run, whatever dies."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client, LocalCluster

import larl
from larl import worlds
from larl.policies import REGISTRY
from larl.simulation import executors as scale
from larl.simulation.executors import LOCAL, SETTINGS, BlocksFailed, Scale, connected, play_here, play_there
from larl.simulation.store import Store
from larl.simulation.study import Study, read_study
from tests.cli.test_cli import command
from tests.simulation.failing_policies import Held, Hungry, Moody
from tests.simulation.test_tasks import BLOCK
from tests.waiting import HANGS, PATIENCE, eventually

pytestmark = pytest.mark.timing
ONE = {"one": worlds.paper(1)}
PLACES = ONE | {"three": worlds.random(2, 3, 0)}
POLICIES = {"LARL": larl.LARL(2), "UCB": larl.UCB()}
TWINS = POLICIES | {"UCB again": larl.UCB()}  # one key, two names
LONG = """
horizon = 400
trials = 800
keep = "summary"
[worlds.drift]
paper = 5
[policies.LARL]
policy = "LARL"
s = 10
[policies.UCB]
policy = "UCB"
"""


def study(**changes: object) -> Study:
    return Study(**({"worlds": PLACES, "policies": POLICIES, "horizon": 60, "trials": 50, "seed": 3} | changes))


def content(result: larl.Result, folder: Path) -> bytes:
    return result.save(folder / "content.nc").read_bytes()


def files(store: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in (store / "blocks").iterdir()}


def begun(store: Path, more_than: int = 2) -> None:
    """Wait until some blocks are in a store."""
    eventually(lambda: len(list(store.glob("blocks/*.npz"))) > more_than)


@contextmanager
def small_cluster(deaths: int = 1, **options: object):
    settings = SETTINGS | {"distributed.scheduler.allowed-failures": deaths}
    with dask.config.set(settings), LocalCluster(n_workers=2, **LOCAL, **options) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch):
    """A scheduler on a busy machine may take long to answer."""
    monkeypatch.setattr(scale, "CONNECT", PATIENCE)


@pytest.fixture(scope="module")
def cluster():
    with small_cluster() as cluster:
        yield cluster


@pytest.fixture(params=["threads", "cluster"])
def where(request):
    """Keywords of `Study.run` that say where it is played."""
    if request.param == "threads":
        return {"threads": 2}
    return {"cluster": request.getfixturevalue("cluster").scheduler_address}


@pytest.mark.parametrize("keep", ["all", "summary"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("block", [None, 7])
def test_the_same_bytes_everywhere(where, keep, stored, block, tmp_path):
    serial = study(keep=keep, policies=TWINS).run(threads=1)
    result = study(keep=keep, policies=TWINS).run(**where, block=block, store=tmp_path / "store" if stored else None)
    assert content(result, tmp_path) == content(serial, tmp_path)


@pytest.mark.parametrize("count", [1, 3])  # as many as asked for, however many cores there are
def test_a_cluster_of_its_own_leaves_nothing_behind(count):
    def workers() -> set[psutil.Process]:
        return {each for each in psutil.Process().children() if is_worker(each)}

    def is_worker(process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(process.cmdline())
        except psutil.NoSuchProcess:  # it has just ended
            return False

    before = workers()
    with connected(f"local:{count}") as client:
        assert sum(client.nthreads().values()) == count
        assert len(workers() - before) == count
    assert workers() == before


def test_what_is_done_is_not_done_again(where, tmp_path):
    store = tmp_path / "store"
    first = content(study().run(**where, store=store), tmp_path)
    before = files(store)
    lost, altered = sorted(before)[1], sorted(before)[2]
    (store / "blocks" / lost).unlink()
    (store / "blocks" / altered).write_bytes(before[altered][1][:-40])
    assert content(study().run(**where, store=store), tmp_path) == first
    after = files(store)
    assert {name for name in before if after[name][0] != before[name][0]} == {lost, altered}
    assert {name: each[1] for name, each in after.items()} == {name: each[1] for name, each in before.items()}


def test_a_changed_study_is_refused(tmp_path):
    study().run(store=tmp_path)
    for changes, words in (({"seed": 4}, "study.seed = 4"), ({"trials": 51}, "study.trials = 51")):
        with pytest.raises(larl.InvalidValue) as refusal:
            study(**changes).run(store=tmp_path)
        assert words in str(refusal.value)
    with pytest.raises(larl.InvalidValue, match=r"study\.block = 9"):
        study().run(store=tmp_path, block=9)


def test_a_block_that_raises_is_named_and_the_others_are_kept(where, tmp_path):
    (tmp_path / "mood").write_text("bad")
    moody = study(policies=POLICIES | {"moody": Moody(str(tmp_path / "mood"))})
    with pytest.raises(BlocksFailed) as failure:
        moody.run(**where, store=tmp_path / "store")
    assert len(failure.value.failures) == 1
    assert "policy 'moody', trials" in str(failure.value)
    assert "ArithmeticError: not today" in str(failure.value)
    kept = files(tmp_path / "store")
    assert len(kept) == 2 * 3 * 4 - 1
    again = moody.run(**where, store=tmp_path / "store")
    assert content(again, tmp_path) == content(moody.run(threads=1), tmp_path)
    assert all(files(tmp_path / "store")[name] == each for name, each in kept.items())


def test_failures_without_a_store_say_that_nothing_was_kept(tmp_path):
    (tmp_path / "mood").write_text("bad\n" * 99)
    with pytest.raises(BlocksFailed, match=r"8 block\(s\) failed") as failure:
        study(policies={"moody": Moody(str(tmp_path / "mood"))}).run(threads=1, block=13)
    assert "and 3 more" in str(failure.value)
    assert "nothing was kept" in str(failure.value)


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    gate = tmp_path / "gate"  # the last blocks wait behind it
    gate.touch()
    long = study(worlds=ONE, horizon=400, trials=400, keep="summary", policies=POLICIES | {"held": Held(str(gate))})

    def kill() -> None:
        try:
            begun(tmp_path / "store")
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        finally:
            gate.unlink()

    with Client(cluster, set_as_default=False) as client:
        pids = client.run(os.getpid)
        killer = threading.Thread(target=kill)
        killer.start()
        found = long.run(cluster=cluster.scheduler_address, store=tmp_path / "store", block=10)
        killer.join()
        eventually(lambda: len(set(client.run(os.getpid).values()) - set(pids.values())), 1)
    assert content(found, tmp_path) == content(long.run(threads=1), tmp_path)


def test_a_scheduler_that_dies_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "CONNECT", 2.0)
    endless = study(worlds=ONE, horizon=400, trials=2_000_000, policies={"LARL": larl.LARL(5)}, keep="summary")
    found: list[OSError] = []

    def run(address: str) -> None:
        try:
            endless.run(cluster=address, store=tmp_path / "store", block=50)
        except OSError as error:
            found.append(error)

    with small_cluster() as cluster:
        thread = threading.Thread(target=run, args=(cluster.scheduler_address,))
        thread.start()
        begun(tmp_path / "store")
        cluster.close()
        thread.join(PATIENCE)
    assert "scheduler was lost" in str(found[0])
    assert "what is in the store is kept" in str(found[0])
    assert 2 < len(files(tmp_path / "store")) < 40_000


def test_a_worker_out_of_memory_costs_one_block(tmp_path):
    (tmp_path / "hunger").touch()
    hungry = study(
        worlds=ONE,
        trials=8,
        policies={"UCB": larl.UCB(), "hungry": Hungry(str(tmp_path / "hunger"))},
    )
    with small_cluster(deaths=0, memory_limit="700MiB") as cluster:
        address = cluster.scheduler_address
        with pytest.raises(BlocksFailed) as failure:
            hungry.run(cluster=address, store=tmp_path / "store", block=8)
        assert [block.name for block, _ in failure.value.failures] == ["hungry"]
        assert "policy 'hungry', trials 0–7: every worker that played it died" in str(failure.value)
        assert len(files(tmp_path / "store")) == 1
        (tmp_path / "hunger").unlink()
        result = hungry.run(cluster=address, store=tmp_path / "store", block=8)
    assert content(result, tmp_path) == content(hungry.run(threads=1), tmp_path)


@pytest.mark.parametrize("where", [(), ("--cluster", "local:2")])
def test_killed_as_a_whole_and_run_again(where, tmp_path, monkeypatch):
    path, store, gate = tmp_path / "study.toml", tmp_path / "store", tmp_path / "gate"
    monkeypatch.setitem(REGISTRY, "Held", Held)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)  # for workers, too
    known = "from larl.policies import REGISTRY; from tests.simulation.failing_policies import Held\n"
    known += "REGISTRY['Held'] = Held"
    path.write_text(f"{LONG}[policies.last]\npolicy = 'Held'\nfile = '{gate}'\n")
    gate.touch()  # the last blocks wait behind it
    words = ("compare", path, "--store", store, "--block", 20, "--out", tmp_path / "out", *where)
    with subprocess.Popen(command(*words, first=known), stderr=subprocess.DEVNULL) as process:
        begun(store, 5)
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    eventually(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family))
    gate.unlink()
    before = {name: each for name, each in files(store).items() if not name.startswith(".")}
    if where:  # the rest on threads: stores do not ask who fills them
        result = content(read_study(path).run(store=store, block=20), tmp_path)
    else:
        subprocess.run(command(*words, first=known), check=True, stdout=subprocess.DEVNULL, timeout=HANGS)
        result = (tmp_path / "out" / "result.nc").read_bytes()
    after = files(store)
    assert all(after[name] == each for name, each in before.items())
    assert len([name for name in after if not name.startswith(".")]) == 120
    assert result == content(read_study(path).run(threads=1), tmp_path)


def test_two_runs_into_one_store(tmp_path):
    path, store = tmp_path / "study.toml", tmp_path / "store"
    path.write_text(LONG)
    code = (
        f"from larl.simulation.study import read_study; read_study({str(path)!r}).run(store={str(store)!r}, block=20)"
    )
    save = ".save({!r})"
    both = [subprocess.Popen([sys.executable, "-c", code + save.format(str(tmp_path / name))]) for name in "ab"]
    assert [process.wait(HANGS) for process in both] == [0, 0]
    serial = content(read_study(path).run(threads=1), tmp_path)
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [serial, serial]
    assert len(files(store)) == 80


def test_a_worker_that_does_not_see_the_store_sends_its_arrays(tmp_path):
    store = Store.open(tmp_path, {})
    there = Store(tmp_path / "not mounted", store.token)
    assert play_here(BLOCK, store).arrays is None
    assert store.get(BLOCK) is not None
    assert play_here(BLOCK, there).arrays is not None
    assert not (tmp_path / "not mounted").exists()


def test_a_worker_with_other_code_is_refused():
    with pytest.raises(larl.InvalidValue, match=r"worker: numba = .* accepted: 0\.0, as where the study was started"):
        play_there(BLOCK, None, {"numba": "0.0"})


@pytest.mark.parametrize("address", ["local:", "local:0", "local:two", "tcp://127.0.0.1:1", "ftp://x", "nonsense"])
def test_an_address_that_is_none_is_refused(address, monkeypatch):
    monkeypatch.setattr(scale, "CONNECT", 0.3)
    with pytest.raises(larl.InvalidValue, match="address of a Dask scheduler"), connected(address):
        pass


def test_a_block_that_vanishes_from_the_store_is_said(tmp_path):
    store = Store.open(tmp_path, {})
    with pytest.raises(OSError, match="run the same command again"):
        for _ in Scale(1, None, store)(iter([BLOCK]), _Thief(store.path(BLOCK))):
            pass


class _Thief:
    """A listener to progress that takes a block's file away as soon as it was played."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def played(self, *_: object) -> None:
        self.path.unlink()

    def tick(self) -> None:
        pass
