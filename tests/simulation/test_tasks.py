"""Blocks: pure functions of their keys, streamed in order or as they come."""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import larl
from larl import worlds
from larl.simulation.tasks import Block, Played, Threads, code, cut, on_threads, perform, stream, task_size, totals
from tests.simulation.failing_policies import Moody
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timing
BLOCK = Block("w", "p", worlds.paper(1), larl.LARL(1), 30, 5, "all", 4, 9)


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_a_block_is_a_part_of_the_comparison(keep):
    whole = larl.compare({"p": BLOCK.policy}, BLOCK.world, horizon=30, trials=12, seed=5)
    arrays = replace(BLOCK, keep=keep).play()
    assert np.array_equal(totals(arrays), whole.regret.sel(policy="p").values[4:9].sum(axis=1)) or keep == "summary"
    if keep == "all":
        assert np.array_equal(arrays["regret"], whole.regret.sel(policy="p").values[4:9])
        assert np.array_equal(arrays["arm"], whole.arm.sel(policy="p").values[4:9])
    else:
        assert np.allclose(arrays["sums"], whole.regret.sel(policy="p").values[4:9].cumsum(axis=1), rtol=1e-12)


def test_the_key_knows_everything_but_names():
    changes = [
        {"world": worlds.paper(5)},
        {"policy": larl.LARL(2)},
        {"horizon": 31},
        {"seed": 6},
        {"keep": "summary"},
        {"first": 3},
        {"stop": 10},
    ]
    keys = {BLOCK.key(), *(replace(BLOCK, **change).key() for change in changes)}
    assert len(keys) == 1 + len(changes)
    assert replace(BLOCK, place="elsewhere", name="other").key() == BLOCK.key()
    assert BLOCK.about()["code"] == code()


def test_the_key_knows_the_source_of_policies_from_outside(tmp_path):
    about = replace(BLOCK, policy=Moody(str(tmp_path))).about()
    assert set(about["code"]) == {*code(), "source of tests.simulation.failing_policies"}


@pytest.mark.parametrize(
    ("horizon", "trials", "size"), [(200, 1000, 250), (200, 10**6, 1000), (10**7, 50, 1), (5, 1, 1)]
)
def test_sizes_of_tasks(horizon, trials, size):
    assert task_size(horizon, trials) == size


def test_blocks_cover_every_trial_once():
    blocks = list(cut({"a": BLOCK.world, "b": BLOCK.world}, {"p": BLOCK.policy}, 5, 10, 0, "all", 4))
    assert [(block.place, block.first, block.stop) for block in blocks] == [
        (place, first, min(first + 4, 10)) for place in "ab" for first in (0, 4, 8)
    ]


def blocks_of(count: int) -> list[Block]:
    return [replace(BLOCK, first=i, stop=i + 1) for i in range(count)]


def delayed(release: threading.Event, ordered: bool) -> Callable[[Block], Played]:
    """The first block waits until it is released: by the fourth, if they are to come in order."""

    def work(block: Block) -> Played:
        if block.first == 0:
            assert release.wait(PATIENCE)
        elif block.first == 3 and ordered:  # one that comes later is done, and the first still waits
            release.set()
        return Played(np.zeros(1), 0.0, None)

    return work


def test_as_they_are_finished_or_in_order():
    for ordered in (False, True):
        release = threading.Event()
        steps = on_threads(blocks_of(6), 2, delayed(release, ordered), ordered=ordered)
        if ordered:
            assert [block.first for block, _ in steps] == list(range(6))
        else:
            first = next(steps)[0].first
            release.set()
            assert first != 0
            assert sorted([first, *(block.first for block, _ in steps)]) == list(range(6))


def test_no_more_than_the_window_is_under_way():
    most, lock, running, several = 0, threading.Lock(), 0, threading.Event()

    def work(block: Block) -> Played:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
            if most > 1:
                several.set()
        assert several.wait(PATIENCE)
        with lock:
            running -= 1
        return Played(np.zeros(1), 0.0, None)

    class Few(Threads):
        def room(self) -> int:
            return 3

    with closing(Few(16, work)) as players:
        assert len(list(stream(players, blocks_of(60), ordered=False, wait=lambda: None))) == 60
    assert 1 < most <= 3


def test_an_error_is_an_outcome_and_others_go_on():
    def work(block: Block) -> Played:
        if block.first == 2:
            raise ArithmeticError("no")
        return perform(block)

    outcomes = [played for _, played in on_threads(blocks_of(5), 2, work)]
    assert [isinstance(each, ArithmeticError) for each in outcomes] == [i == 2 for i in range(5)]


def test_compare_raises_what_a_block_raised_and_says_where(tmp_path):
    (tmp_path / "mood").write_text("bad\n" * 9)
    policies = {"UCB": larl.UCB(), "moody": Moody(str(tmp_path / "mood"))}
    with pytest.raises(ArithmeticError, match="not today") as failure:
        larl.compare(policies, BLOCK.world, horizon=5, trials=8, threads=1)
    assert "policy 'moody', trials 0–1" in failure.value.__notes__[0]
