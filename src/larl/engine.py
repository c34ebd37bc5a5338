"""Trials × time, compiled. The engine hands each policy its random word and records regret from the world's means.

A trial is a pure function of (spec, world, seed, trial): world noise and policies' words are separate streams keyed
by (seed, trial), and every trial starts from a fresh State. So results depend neither on the number of threads, nor on
how trials are cut into blocks, nor on which other policies run.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from larl._compile import INNER, copy_fields, entry, generic, implement
from larl._latent import advance, begin, react
from larl._words import POLICY, WORLD, stream, word
from larl.policies._contract import act, present, reveal, update
from larl.variants import ContextState

Floats = NDArray[np.float64]
Arms = NDArray[np.int16]


class Trace(NamedTuple):
    """What was recorded, each (trials, time): regret of the step, arm played, reward seen."""

    regret: Floats
    arm: Arms
    reward: Floats


@generic
def show(latent: Any, state: Any) -> None:
    """Show a State what its world shows before a step. Most show nothing."""


def show_context(latent: ContextState, state: Any) -> None:
    """The context."""
    present(state, latent.context)


implement(show, ContextState, show_context)


@numba.njit(**INNER)  # type: ignore[untyped-decorator]  # not cached on its own: its State may come from outside the package
def play_steps(latent: Any, state: Any, seed: int, trial: int, first: int, trace: Trace) -> None:
    """Play steps first, first + 1, … of a trial, as many as the trace's rows have room for."""
    noise, words = stream(seed, trial, WORLD), stream(seed, trial, POLICY)
    for i in range(trace.regret.size):
        luck = advance(latent, noise, first + i)
        reveal(state, latent.means)
        show(latent, state)
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
def play_all(world: Any, policy: Any, seed: int, first: int, trace: Trace) -> None:
    """Trials first, first + 1, …: one a row of the trace."""
    for row in range(trace.regret.shape[0]):
        latent, state = copy_fields(world), copy_fields(policy)
        begin(latent, seed, first + row)
        play_steps(latent, state, seed, first + row, 0, Trace(trace.regret[row], trace.arm[row], trace.reward[row]))


@entry
def play_sums(world: Any, policy: Any, seed: int, first: int, times: NDArray[np.int64], sums: Floats) -> None:
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
            play_steps(latent, state, seed, first + row, start, part)
            for i in range(steps):
                total += part.regret[i]
            sums[row, j], start = total, start + steps
