"""Trials × time, compiled. The engine hands each policy its random word and records regret from the world's means.

A trial is a pure function of (spec, world, seed, trial): world noise and policies' words are separate streams keyed
by (seed, trial), and every trial starts from a fresh State. So results depend neither on the number of threads, nor on
how trials are cut into blocks, nor on which other policies run.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from larl._compile import INNER, copy_fields, entry
from larl._latent import advance, begin, react
from larl._words import POLICY, WORLD, stream, word
from larl.policies._contract import Policy, act, reveal, update
from larl.world import World

Floats = NDArray[np.float64]
Arms = NDArray[np.int16]
T = TypeVar("T")
STEPS_A_BLOCK = 20_000  # some hundredths of a second: short enough to report progress and to stop


class Trace(NamedTuple):
    """What was recorded, each (trials, time): regret of the step, arm played, reward seen."""

    regret: Floats
    arm: Arms
    reward: Floats


@numba.njit(**INNER)  # type: ignore[untyped-decorator]  # not cached on its own: its State may come from outside the package
def _steps(latent: Any, state: Any, seed: int, trial: int, first: int, trace: Trace) -> None:
    """Play steps first, first + 1, … of a trial, as many as the trace's rows have room for."""
    noise, words = stream(seed, trial, WORLD), stream(seed, trial, POLICY)
    for i in range(trace.regret.size):
        luck = advance(latent, noise, first + i)
        reveal(state, latent.means)
        arm = act(state, word(words, first + i))
        if not 0 <= arm < latent.means.size:
            raise ValueError("a policy chose an arm that does not exist")
        best = latent.means[0]
        for other in range(1, latent.means.size):
            best = max(best, latent.means[other])
        trace.regret[i] = best - latent.means[arm]
        trace.arm[i] = arm
        trace.reward[i] = latent.means[arm] + latent.sd[arm] * luck
        update(state, arm, trace.reward[i])
        react(latent, arm)


@entry
def _play_all(world: Any, policy: Any, seed: int, first: int, trace: Trace) -> None:
    """Trials first, first + 1, …: one a row of the trace."""
    for row in range(trace.regret.shape[0]):
        latent, state = copy_fields(world), copy_fields(policy)
        begin(latent, seed, first + row)
        _steps(latent, state, seed, first + row, 0, Trace(trace.regret[row], trace.arm[row], trace.reward[row]))


@entry
def _play_sums(world: Any, policy: Any, seed: int, first: int, times: NDArray[np.int64], sums: Floats) -> None:
    """Trials first, first + 1, …: into row i, the regret of steps 0 … times[j] of trial first + i, for every j."""
    longest, before = 0, -1
    for j in range(times.size):
        longest, before = max(longest, times[j] - before), times[j]
    trace = Trace(np.empty(longest), np.empty(longest, dtype=np.int16), np.empty(longest))
    for row in range(sums.shape[0]):
        latent, state = copy_fields(world), copy_fields(policy)
        begin(latent, seed, first + row)
        total, start = 0.0, 0
        for j in range(times.size):
            steps = times[j] + 1 - start
            part = Trace(trace.regret[:steps], trace.arm[:steps], trace.reward[:steps])
            _steps(latent, state, seed, first + row, start, part)
            for i in range(steps):
                total += part.regret[i]
            sums[row, j], start = total, start + steps


class Job(NamedTuple):
    """One policy in one world."""

    world: World
    policy: Policy
    horizon: int
    trials: int
    seed: int
    threads: int
    block: int | None = None  # trials a thread takes at a time

    def state(self) -> Any:
        """The policy's State before a trial."""
        return self.policy.init(self.world.arms, horizon=self.horizon, world=self.world)

    def blocks(self) -> Iterator[range]:
        """The trials, cut into blocks."""
        even = -(-self.trials // (4 * self.threads))
        size = self.block or max(1, min(STEPS_A_BLOCK // self.horizon, even))
        for first in range(0, self.trials, size):
            yield range(first, min(first + size, self.trials))


def default_threads() -> int:
    """As many threads as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[range], T], job: Job) -> Iterator[tuple[range, T]]:
    """work(block) for every block of a job, on its threads; results come in order, few of them waiting at a time."""
    pool = ThreadPoolExecutor(job.threads, thread_name_prefix="larl")
    pending: deque[tuple[range, Future[T]]] = deque()
    try:
        for block in job.blocks():
            pending.append((block, pool.submit(work, block)))
            if len(pending) > 2 * job.threads:
                done, future = pending.popleft()
                yield done, future.result()
        for done, future in pending:
            yield done, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def play(job: Job, trace: Trace, report: Callable[[int], None]) -> None:
    """Every step of every trial, into `trace`. `report` is told how many more trials are done."""
    latent, state = job.world.latent(), job.state()

    def work(block: range) -> None:
        rows = slice(block.start, block.stop)
        _play_all(latent, state, job.seed, block.start, Trace(trace.regret[rows], trace.arm[rows], trace.reward[rows]))

    for block, _ in in_order(work, job):
        report(len(block))


def cumulative(job: Job, times: NDArray[np.int64]) -> Iterator[Floats]:
    """Blocks, in order, of regret summed up to each of `times`: shape (trials of the block, times)."""
    latent, state = job.world.latent(), job.state()

    def work(block: range) -> Floats:
        sums = np.empty((len(block), times.size))
        _play_sums(latent, state, job.seed, block.start, times, sums)
        return sums

    for _, sums in in_order(work, job):
        yield sums
