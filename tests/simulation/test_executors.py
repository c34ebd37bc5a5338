"""Studies on threads, on a cluster and in stores: identical results everywhere, also after failures."""

import math
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
from larl.simulation.executors import BlocksFailed, ThreadExecutor, run_blocks
from larl.simulation.executors import dask as dask_executor
from larl.simulation.executors.dask import LOCAL_CLUSTER, SETTINGS, connect
from larl.simulation.store import Store
from larl.simulation.study import Study, read_study
from tests.cli.running import command
from tests.simulation.failing_policies import FailsOncePerLine, UsesAllMemory, WaitsForFile
from tests.simulation.test_tasks import BLOCK
from tests.waiting import HANGS, PATIENCE, eventually

pytestmark = pytest.mark.timing
ONE_WORLD = {"one": worlds.paper(1)}
TWO_WORLDS = ONE_WORLD | {"three": worlds.random(2, 3, 0)}
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
    return Study(**({"worlds": TWO_WORLDS, "policies": POLICIES, "horizon": 60, "trials": 50, "seed": 3} | changes))


def content(result: larl.Result, folder: Path) -> bytes:
    return result.save(folder / "content.nc").read_bytes()


def files(store: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in (store / "blocks").iterdir()}


def wait_for_blocks(store: Path, more_than: int = 2) -> None:
    """Wait until some blocks are in a store."""
    eventually(lambda: len(list(store.glob("blocks/*.npz"))) > more_than)


@contextmanager
def small_cluster(workers: int = 2, deaths: int = 1, **options: object):
    settings = SETTINGS | {"distributed.scheduler.allowed-failures": deaths}
    with dask.config.set(settings), LocalCluster(n_workers=workers, **LOCAL_CLUSTER, **options) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch):
    """Give a scheduler on a busy machine time to answer."""
    monkeypatch.setattr(dask_executor, "CONNECT_TIMEOUT", PATIENCE)


@pytest.fixture(scope="module")
def cluster():
    with small_cluster() as cluster:
        yield cluster


@pytest.fixture(params=["threads", "cluster"])
def where(request):
    """Keywords of `Study.run` that choose the executor."""
    if request.param == "threads":
        return {"threads": 2}
    return {"cluster": request.getfixturevalue("cluster").scheduler_address}


@pytest.mark.parametrize("keep", ["all", "summary"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("block", [None, 7])
def test_result_does_not_depend_on_executor_store_or_block(where, keep, stored, block, tmp_path):
    serial = study(keep=keep, policies=TWINS).run(threads=1)
    result = study(keep=keep, policies=TWINS).run(**where, block=block, store=tmp_path / "store" if stored else None)
    assert content(result, tmp_path) == content(serial, tmp_path)


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.long)])
def test_local_cluster_has_as_many_workers_as_requested_and_stops_them(count):
    def workers() -> set[psutil.Process]:
        return {each for each in psutil.Process().children() if is_worker(each)}

    def is_worker(process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(process.cmdline())
        except psutil.NoSuchProcess:  # it has just ended
            return False

    before = workers()
    with connect(f"local:{count}") as client:
        assert sum(client.nthreads().values()) == count
        assert len(workers() - before) == count
    assert workers() == before


def test_stored_blocks_are_not_run_again(where, tmp_path):
    store = tmp_path / "store"
    first = content(study().run(**where, store=store), tmp_path)
    before = files(store)
    removed, truncated = sorted(before)[1], sorted(before)[2]
    (store / "blocks" / removed).unlink()
    (store / "blocks" / truncated).write_bytes(before[truncated][1][:-40])
    assert content(study().run(**where, store=store), tmp_path) == first
    after = files(store)
    assert {name for name in before if after[name][0] != before[name][0]} == {removed, truncated}
    assert {name: each[1] for name, each in after.items()} == {name: each[1] for name, each in before.items()}


def test_store_refuses_a_changed_study(tmp_path):
    study().run(store=tmp_path)
    for changes, message in (({"seed": 4}, "study.seed = 4"), ({"trials": 51}, "study.trials = 51")):
        with pytest.raises(larl.InvalidValue) as refusal:
            study(**changes).run(store=tmp_path)
        assert message in str(refusal.value)
    with pytest.raises(larl.InvalidValue, match=r"study\.block = 9"):
        study().run(store=tmp_path, block=9)


def test_failed_block_is_named_and_the_others_are_kept(where, tmp_path):
    (tmp_path / "failures").write_text("fail")
    failing = study(policies=POLICIES | {"failing": FailsOncePerLine(str(tmp_path / "failures"))})
    with pytest.raises(BlocksFailed) as failure:
        failing.run(**where, store=tmp_path / "store")
    assert len(failure.value.failures) == 1
    assert "policy 'failing', trials" in str(failure.value)
    assert "ArithmeticError: this policy fails" in str(failure.value)
    kept = files(tmp_path / "store")
    assert len(kept) == 2 * 3 * 4 - 1
    again = failing.run(**where, store=tmp_path / "store")
    assert content(again, tmp_path) == content(failing.run(threads=1), tmp_path)
    assert all(files(tmp_path / "store")[name] == each for name, each in kept.items())


def test_failures_without_a_store_say_that_nothing_was_kept(tmp_path):
    (tmp_path / "failures").write_text("fail\n" * 99)
    with pytest.raises(BlocksFailed, match=r"8 block\(s\) failed") as failure:
        study(policies={"failing": FailsOncePerLine(str(tmp_path / "failures"))}).run(threads=1, block=13)
    assert "and 3 more" in str(failure.value)
    assert "nothing was kept" in str(failure.value)


def test_killed_worker_does_not_change_the_result(cluster, tmp_path):
    barrier = tmp_path / "barrier"  # the last blocks wait until it is removed
    barrier.touch()
    policies = POLICIES | {"waiting": WaitsForFile(str(barrier))}
    long = study(worlds=ONE_WORLD, horizon=400, trials=400, keep="summary", policies=policies)

    def kill() -> None:
        try:
            wait_for_blocks(tmp_path / "store")
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        finally:
            barrier.unlink()

    with Client(cluster, set_as_default=False) as client:
        pids = client.run(os.getpid)
        killer = threading.Thread(target=kill)
        killer.start()
        result = long.run(cluster=cluster.scheduler_address, store=tmp_path / "store", block=10)
        killer.join()
        eventually(lambda: len(set(client.run(os.getpid).values()) - set(pids.values())), 1)
    assert content(result, tmp_path) == content(long.run(threads=1), tmp_path)


def test_lost_scheduler_is_a_connection_error(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_executor, "CONNECT_TIMEOUT", 2.0)
    endless = study(worlds=ONE_WORLD, horizon=400, trials=2_000_000, policies={"LARL": larl.LARL(5)}, keep="summary")
    errors: list[OSError] = []

    def run(address: str) -> None:
        try:
            endless.run(cluster=address, store=tmp_path / "store", block=50)
        except OSError as error:
            errors.append(error)

    with small_cluster(1) as cluster:
        thread = threading.Thread(target=run, args=(cluster.scheduler_address,))
        thread.start()
        wait_for_blocks(tmp_path / "store")
        cluster.close()
        thread.join(PATIENCE)
    assert "scheduler was lost" in str(errors[0])
    assert "blocks in the store are kept" in str(errors[0])
    assert 2 < len(files(tmp_path / "store")) < 40_000


def test_client_that_gave_up_is_a_connection_error(cluster):
    with Client(cluster, set_as_default=False) as client:
        executor = dask_executor.DaskExecutor(cluster.scheduler_address)
        executor._client, executor._counted_at = client, -math.inf
        client.scheduler, before = None, client.scheduler  # as Dask does after its time-out
        with pytest.raises(ConnectionError, match="scheduler was lost"):
            executor.capacity()
        client.scheduler = before


@pytest.mark.long
def test_worker_out_of_memory_fails_one_block_only(tmp_path):
    (tmp_path / "file").touch()
    policies = {"UCB": larl.UCB(), "memory": UsesAllMemory(str(tmp_path / "file"))}
    large = study(worlds=ONE_WORLD, trials=8, policies=policies)
    with small_cluster(deaths=0, memory_limit="700MiB") as cluster:
        address = cluster.scheduler_address
        with pytest.raises(BlocksFailed) as failure:
            large.run(cluster=address, store=tmp_path / "store", block=8)
        assert [block.policy_name for block, _ in failure.value.failures] == ["memory"]
        assert "policy 'memory', trials 0–7: every worker that ran it died" in str(failure.value)
        assert len(files(tmp_path / "store")) == 1
        (tmp_path / "file").unlink()
        result = large.run(cluster=address, store=tmp_path / "store", block=8)
    assert content(result, tmp_path) == content(large.run(threads=1), tmp_path)


@pytest.mark.parametrize("where", [(), pytest.param(("--cluster", "local:2"), marks=pytest.mark.long)])
def test_killed_run_continues_from_its_store(where, tmp_path, monkeypatch):
    path, store, barrier = tmp_path / "study.toml", tmp_path / "store", tmp_path / "barrier"
    monkeypatch.setitem(REGISTRY, "WaitsForFile", WaitsForFile)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)  # for workers, too
    setup = "from larl.policies import REGISTRY; from tests.simulation.failing_policies import WaitsForFile\n"
    setup += "REGISTRY['WaitsForFile'] = WaitsForFile"
    path.write_text(f"{LONG}[policies.last]\npolicy = 'WaitsForFile'\nfile = '{barrier}'\n")
    barrier.touch()  # the last blocks wait until it is removed
    arguments = ("compare", path, "--store", store, "--block", 20, "--out", tmp_path / "out", *where)
    with subprocess.Popen(command(*arguments, setup=setup), stderr=subprocess.DEVNULL) as process:
        wait_for_blocks(store, 5)
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    eventually(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family))
    barrier.unlink()
    before = {name: each for name, each in files(store).items() if not name.startswith(".")}
    if where:  # the rest on threads: a store does not depend on the executor
        result = content(read_study(path).run(store=store, block=20), tmp_path)
    else:
        subprocess.run(command(*arguments, setup=setup), check=True, stdout=subprocess.DEVNULL, timeout=HANGS)
        result = (tmp_path / "out" / "result.nc").read_bytes()
    after = files(store)
    assert all(after[name] == each for name, each in before.items())
    assert len([name for name in after if not name.startswith(".")]) == 120
    assert result == content(read_study(path).run(threads=1), tmp_path)


def test_two_runs_can_share_a_store(tmp_path):
    """Another process runs the study while this one does."""
    path, store = tmp_path / "study.toml", tmp_path / "store"
    path.write_text(LONG.replace("trials = 800", "trials = 400"))
    code = (
        "from larl.simulation.study import read_study; "
        f"read_study({str(path)!r}).run(store={str(store)!r}, block=10).save({str(tmp_path / 'other')!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as other:
        wait_for_blocks(store, 0)
        result = content(read_study(path).run(store=store, block=10), tmp_path)
        assert other.wait(HANGS) == 0
    assert result == content(read_study(path).run(threads=1), tmp_path)
    assert result == (tmp_path / "other").read_bytes()
    assert len(files(store)) == 80


@pytest.mark.parametrize("address", ["local:", "local:0", "local:two", "tcp://127.0.0.1:1", "ftp://x", "nonsense"])
def test_invalid_address_is_refused(address, monkeypatch):
    monkeypatch.setattr(dask_executor, "CONNECT_TIMEOUT", 0.3)
    with pytest.raises(larl.InvalidValue, match="address of a Dask scheduler"), connect(address):
        pass


def test_block_that_is_removed_from_the_store_is_an_error(tmp_path):
    store = Store.open(tmp_path, {})
    with pytest.raises(OSError, match="run the same command again"):
        list(run_blocks(ThreadExecutor(1, store), [BLOCK], RemovesFile(store.path(BLOCK))))


class RemovesFile:
    """A progress bar that removes a block's file as soon as the block has run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def finish_block(self, *_: object) -> None:
        self.path.unlink()

    def tick(self) -> None:
        pass
