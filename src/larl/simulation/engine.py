"""The compiled simulation loop: trials × steps of one policy in one world.

A trial is a pure function of (policy, world, seed, trial). The noise of the world and the random bits of the policy are
separate streams keyed by (seed, trial), and every trial starts from a fresh State. So results depend neither on the
number of threads, nor on the size of a block, nor on the other policies of the comparison.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import copy_fields, entry_point, generic, implement, inner
from larl._core.random import EXPLORATION, POLICY, WORLD, empty_bits, random_bits, seed_bits, stream
from larl.policies._contract import choose_arm, has_nan, set_context, set_true_means, update, update_missing
from larl.worlds.kernels import advance, apply_action, begin, draw_reward, step_regret
from larl.worlds.variants import ContextState, RecordedState

Floats = NDArray[np.float64]
Arms = NDArray[np.int16]


class Trace(NamedTuple):
    """Regret, chosen arm and observed reward of every step, each an array of shape (trials, steps)."""

    regret: Floats
    arm: Arms
    reward: Floats


def empty_trace(rows: int, steps: int) -> Trace:
    """Return an uninitialised trace with one row for each trial or unit."""
    return Trace(np.empty((rows, steps)), np.empty((rows, steps), dtype=np.int16), np.empty((rows, steps)))


@generic
def pass_context(latent: Any, state: Any) -> None:
    """Give the State the context of the next step. Most worlds have no context."""


def pass_world_context(latent: ContextState, state: Any) -> None:
    """Give the State the context of a `Contextual` world."""
    set_context(state, latent.context)


implement(pass_context, ContextState, pass_world_context)


@generic
def learn(latent: Any, state: Any, arm: int, reward: float) -> None:  # noqa: ARG001  # noqa: ARG001
    """Update the State with a reward. Worlds with missing rewards implement it by `learn_or_skip`."""
    update(state, arm, reward)


def learn_or_skip(latent: Any, state: Any, arm: int, reward: float) -> None:  # noqa: ARG001  # noqa: ARG001
    """Update the State with a reward, or with the fact that it is missing."""
    if math.isnan(reward):
        update_missing(state, arm)
    else:
        update(state, arm, reward)


implement(learn, RecordedState, learn_or_skip)


@inner
def run_steps(latent: Any, state: Any, seed: int, trial: int, first: int, trace: Trace) -> None:
    """Simulate steps first, first + 1, … of a trial, one for each element of the trace."""
    world_stream, policy_stream, bits = stream(seed, trial, WORLD), stream(seed, trial, POLICY), empty_bits()
    exploration_stream = stream(seed, trial, EXPLORATION)
    for i in range(trace.regret.size):
        reward_noise = advance(latent, world_stream, first + i)
        set_true_means(state, latent.means)
        pass_context(latent, state)
        seed_bits(bits, random_bits(policy_stream, first + i))
        arm = choose_arm(state, bits, exploration_stream, first + i)
        if not 0 <= arm < latent.means.size:
            raise ValueError("a policy chose an arm that does not exist")
        trace.regret[i] = step_regret(latent, arm)
        trace.arm[i] = arm
        trace.reward[i] = draw_reward(latent, arm, reward_noise)
        learn(latent, state, arm, trace.reward[i])
        apply_action(latent, arm)


@entry_point
def run_trials(
    world: Any, policy: Any, seed: int, first: int, times: NDArray[np.int64], sums: Floats, trace: Trace
) -> None:
    """Simulate trials first, first + 1, … and write the regret of steps 0 … times[j] of trial first + i to sums[i, j].

    The trace has either one row for each trial, with a single time, or one row that is reused and as long as the
    longest interval between two times.
    """
    for row in range(sums.shape[0]):
        latent, state, trace_row = copy_fields(world), copy_fields(policy), min(row, trace.regret.shape[0] - 1)
        begin(latent, seed, first + row)
        total, start = 0.0, 0
        for j in range(times.size):
            steps = times[j] + 1 - start
            part = Trace(trace.regret[trace_row, :steps], trace.arm[trace_row, :steps], trace.reward[trace_row, :steps])
            run_steps(latent, state, seed, first + row, start, part)
            for i in range(steps):
                total += part.regret[i]
            sums[row, j], start = total, start + steps
        if has_nan(state):
            raise ArithmeticError("a policy's State contains nan")
