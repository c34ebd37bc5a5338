"""Trials × time, compiled. The engine hands each policy its random word and records regret from the world's means.

A trial is a pure function of (spec, world, seed, trial): world noise and policies' words are separate streams keyed
by (seed, trial), and every trial starts from a fresh State. So results depend neither on the number of threads, nor on
how trials are cut into blocks, nor on which other policies run.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from larl._core.compile import INNER, copy_fields, entry_point, generic, implement
from larl._core.random import POLICY, WORLD, empty_bits, random_bits, seed_bits, stream
from larl.policies._contract import act, has_nan, set_context, set_true_means, update
from larl.worlds.kernels import advance, apply_action, begin
from larl.worlds.variants import ContextState

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
    set_context(state, latent.context)


implement(show, ContextState, show_context)


@numba.njit(**INNER)  # type: ignore[untyped-decorator]  # not cached on its own: its State may come from outside the package
def play_steps(latent: Any, state: Any, seed: int, trial: int, first: int, trace: Trace) -> None:
    """Play steps first, first + 1, … of a trial, as many as the trace's rows have room for."""
    noise, words, bits = stream(seed, trial, WORLD), stream(seed, trial, POLICY), empty_bits()
    for i in range(trace.regret.size):
        reward_noise = advance(latent, noise, first + i)
        set_true_means(state, latent.means)
        show(latent, state)
        seed_bits(bits, random_bits(words, first + i))
        arm = act(state, bits)
        if not 0 <= arm < latent.means.size:
            raise ValueError("a policy chose an arm that does not exist")
        best = latent.means[0]
        for other in range(1, latent.means.size):
            best = max(best, latent.means[other])
        trace.regret[i] = best - latent.means[arm]
        trace.arm[i] = arm
        trace.reward[i] = latent.means[arm] + latent.sd[arm] * reward_noise
        update(state, arm, trace.reward[i])
        apply_action(latent, arm)


@entry_point
def play(world: Any, policy: Any, seed: int, first: int, times: NDArray[np.int64], sums: Floats, trace: Trace) -> None:
    """Trials first, first + 1, …: into row i of `sums` the regret of steps 0 … times[j] of trial first + i.

    The trace has a row a trial, with a single time; or one row, as long as from one time to the next, for scratch.
    """
    for row in range(sums.shape[0]):
        latent, state, kept = copy_fields(world), copy_fields(policy), min(row, trace.regret.shape[0] - 1)
        begin(latent, seed, first + row)
        total, start = 0.0, 0
        for j in range(times.size):
            steps = times[j] + 1 - start
            part = Trace(trace.regret[kept, :steps], trace.arm[kept, :steps], trace.reward[kept, :steps])
            play_steps(latent, state, seed, first + row, start, part)
            for i in range(steps):
                total += part.regret[i]
            sums[row, j], start = total, start + steps
        if has_nan(state):
            raise ArithmeticError("a policy's State has numbers that are nan")
