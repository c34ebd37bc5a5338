"""Results of blocks are streamed in order or as they finish; an error is one of the results."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl.simulation.executors import ThreadExecutor
from larl.simulation.executors.run import stream_results
from larl.simulation.tasks import Block, BlockResult, run_block
from tests.simulation.failing_policies import FailsOncePerLine
from tests.simulation.test_tasks import BLOCK
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
EMPTY = BlockResult(np.zeros(1), 0.0, None)


def make_blocks(count: int) -> list[Block]:
    return [replace(BLOCK, first=i, stop=i + 1) for i in range(count)]


def stream(
    runner: Callable[[Block], BlockResult], count: int, *, ordered: bool = True
) -> Iterator[tuple[Block, BlockResult | Exception]]:
    """Run blocks with a function of the test on two threads."""
    with ThreadExecutor(2, runner=runner) as executor:
        yield from stream_results(executor, make_blocks(count), ordered=ordered, on_idle=lambda: None)


def wait_for_release(release: threading.Event, ordered: bool) -> Callable[[Block], BlockResult]:
    """Return a runner whose first block waits for `release`; if `ordered`, the fourth block sets it."""

    def runner(block: Block) -> BlockResult:
        if block.first == 0:
            assert release.wait(PATIENCE)
        elif block.first == 3 and ordered:  # a later block is finished while the first still waits
            release.set()
        return EMPTY

    return runner


def test_ordered_results_keep_the_order_of_blocks():
    steps = stream(wait_for_release(threading.Event(), ordered=True), 6)
    assert [block.first for block, _ in steps] == list(range(6))


def test_unordered_results_arrive_as_blocks_finish():
    release = threading.Event()
    steps = stream(wait_for_release(release, ordered=False), 6, ordered=False)
    first = next(steps)[0].first
    release.set()
    assert first != 0
    assert sorted([first, *(block.first for block, _ in steps)]) == list(range(6))


def test_at_most_capacity_blocks_run_at_once():
    most, lock, running, several = 0, threading.Lock(), 0, threading.Event()

    def runner(block: Block) -> BlockResult:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
            if most > 1:
                several.set()
        assert several.wait(PATIENCE)
        with lock:
            running -= 1
        return EMPTY

    class ThreeAtOnce(ThreadExecutor):
        def capacity(self) -> int:
            return 3

    with ThreeAtOnce(16, runner=runner) as executor:
        assert len(list(stream_results(executor, make_blocks(60), ordered=False, on_idle=lambda: None))) == 60
    assert 1 < most <= 3


def test_error_of_one_block_does_not_stop_the_others():
    def runner(block: Block) -> BlockResult:
        if block.first == 2:
            raise ArithmeticError("no")
        return run_block(block)

    results = [result for _, result in stream(runner, 5)]
    assert [isinstance(result, ArithmeticError) for result in results] == [i == 2 for i in range(5)]


def test_compare_raises_the_error_of_a_block_with_a_note(tmp_path):
    (tmp_path / "failures").write_text("fail\n" * 9)
    policies = {"UCB": larl.UCB(), "failing": FailsOncePerLine(str(tmp_path / "failures"))}
    with pytest.raises(ArithmeticError, match="this policy fails") as failure:
        larl.compare(policies, BLOCK.world, horizon=5, trials=8, threads=1)
    assert "policy 'failing', trials 0–1" in failure.value.__notes__[0]


def test_an_executor_can_be_used_again():
    executor = ThreadExecutor(1)
    results = [larl.compare({"p": BLOCK.policy}, BLOCK.world, horizon=5, trials=8, executor=executor) for _ in range(2)]
    assert results[0].data.identical(results[1].data)


def test_compare_refuses_what_is_not_an_executor():
    with pytest.raises(larl.InvalidValue, match=r"compare: executor = 3 .*ThreadExecutor"):
        larl.compare({"p": BLOCK.policy}, BLOCK.world, horizon=5, trials=8, executor=3)
