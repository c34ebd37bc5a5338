"""Compiled functions of agents and cohorts: choose an arm, learn a reward, and replay logged steps into a State.

They take the address of a *record*: 8-byte words with the addresses and numbers of one unit, in the order below. So a
call from Python passes one number, and the results are read from the record.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import any_nan, config, inline, inner, kernel
from larl._core.random import random_bits, seed_bits
from larl._core.states import Memory, bits_at, floats_at, mask_at, words_at
from larl._core.validation import LARGEST
from larl.policies._contract import set_context, update, update_missing
from larl.policies._deployment import draw_plain_arm, drawn_arm
from larl.policies._entry import Handle, write_prediction

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
BITS = 0  # three words: the random bits of a step
# The State that learns and the one that decides (the same unless learning is scheduled), by their words.
ENTRY, REPORTS, STATE, DECIDING = 3, 4, 5, 6
RULES, DRAW, MINIMUM = 7, 8, 9  # words of the deployment's rules, `Rules.draw`; if that is 0, the minimum probability
POLICY_KEY, EXPLORATION_KEY, ID_KEY = 10, 11, 12
ARMS, AVAILABLE, PROBABILITIES, CONTEXT, CONTEXT_SIZE = 13, 14, 15, 16, 17
CHECKED, CHECKED_SIZE = 18, 19  # arrays of the State that are searched for nan
# The log: steps in the State and in the log, the step of its first row, the number of rows, and its columns.
TIME, END, BASE, ROWS, LOG_ARM, LOG_REWARD, LOG_PENDING, LOG_CONTEXT = 20, 21, 22, 23, 24, 25, 26, 27
MAX_DELAY = 28
EXPECTED, WIDTH, EXPLORED, ID, STEP = 29, 30, 31, 32, 33  # results of a decision; the first two are adjacent
RECORD_SIZE = 34
NOT_READY = -1  # result of `decide`: the State does not contain all steps
LEARNT, CHECKPOINT_DUE = 1, 2  # results of `learn`; 0: the reward is not of the step that is next to be learnt


@inner
def choose(record: int, t: int) -> int:
    """Return the arm of step t and write its results; raise ArithmeticError if the policy's numbers are invalid."""
    words, floats, keys = words_at(record, RECORD_SIZE), floats_at(record, RECORD_SIZE), bits_at(record, RECORD_SIZE)
    state = Handle(words[ENTRY], words[REPORTS], words[DECIDING])
    if words[CONTEXT_SIZE] > 0:
        set_context(state, floats_at(words[CONTEXT], words[CONTEXT_SIZE]))
    checked = words_at(words[CHECKED], 2 * words[CHECKED_SIZE])
    for i in range(words[CHECKED_SIZE]):
        word = checked[2 * i]
        if any_nan(floats_at(words_at(state.words, word + 1)[word], checked[2 * i + 1])):
            raise ArithmeticError("its State contains nan")
    bits = bits_at(record + 8 * BITS, 3)
    seed_bits(bits, random_bits(keys[POLICY_KEY], t))
    available, probabilities = mask_at(words[AVAILABLE], words[ARMS]), floats_at(words[PROBABILITIES], words[ARMS])
    key = keys[EXPLORATION_KEY]
    if words[DRAW] == 0:
        arm, is_forced = draw_plain_arm(state, floats[MINIMUM], t, bits, key, available, probabilities)
    else:
        arm, is_forced = drawn_arm(words[DRAW], words[RULES], state, t, bits, key, available, probabilities)
    write_prediction(state, arm, record + 8 * EXPECTED)
    if math.isinf(floats[EXPECTED]):
        raise ArithmeticError("its prediction is infinite")
    words[EXPLORED] = is_forced
    keys[ID], words[STEP] = random_bits(keys[ID_KEY], t), t
    return arm


@kernel
def decide(record: int, t: int) -> int:
    """Choose the arm of step t, or if t < 0 that of the next step and add it to the log, or return NOT_READY."""
    words = words_at(record, RECORD_SIZE)
    if t >= 0:
        return choose(record, t)
    t = words[END]
    if words[TIME] != t:
        return NOT_READY
    arm = choose(record, t)
    row, size = t - words[BASE], words[CONTEXT_SIZE]
    words_at(words[LOG_ARM], words[ROWS])[row] = arm
    floats_at(words[LOG_REWARD], words[ROWS])[row] = math.nan
    mask_at(words[LOG_PENDING], words[ROWS])[row] = True
    context, logged = floats_at(words[CONTEXT], size), floats_at(words[LOG_CONTEXT] + 8 * size * row, size)
    for i in range(size):
        logged[i] = context[i]
    words[END] = t + 1
    return arm


@inline
def learn_row(record: int, row: int) -> None:
    """Update the State with a row of the log. A reward of nan is missing; an arm of −1 means that none was played."""
    words = words_at(record, RECORD_SIZE)
    state, size = Handle(words[ENTRY], words[REPORTS], words[STATE]), words[CONTEXT_SIZE]
    arm, reward = words_at(words[LOG_ARM], row + 1)[row], floats_at(words[LOG_REWARD], row + 1)[row]
    if size > 0:
        set_context(state, floats_at(words[LOG_CONTEXT] + 8 * size * row, size))
    if math.isnan(reward):
        update_missing(state, arm)
    else:
        update(state, arm, reward)


@kernel
def learn(record: int, step: int, reward: float) -> int:
    """Learn the reward of a step if it is the latest one and waits for it, which is the usual case."""
    words = words_at(record, RECORD_SIZE)
    if step != words[TIME] or step + 1 != words[END] or not abs(reward) <= LARGEST:
        return 0
    row, pending = step - words[BASE], mask_at(words[LOG_PENDING], words[ROWS])
    if not pending[row]:
        return 0
    floats_at(words[LOG_REWARD], words[ROWS])[row], pending[row] = reward, False
    learn_row(record, row)
    words[TIME] = step + 1
    return CHECKPOINT_DUE if (row + 1) % words[MAX_DELAY] == 0 else LEARNT


@kernel
def replay(record: int, first: int, end: int) -> None:
    """Update the State with the rows first … end − 1 of the log."""
    for row in range(first, end):
        learn_row(record, row)


@kernel
def replay_shared(
    state: Handle, stride: int, units: Ints, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int
) -> None:
    """Update the States of a cohort with the steps first … end − 1; step i belongs to unit `units[i]`.

    `state` is the handle of unit 0, and `stride` the bytes from the words of one unit to those of the next.
    """
    for i in range(first, end):
        unit = Handle(state.entry, state.reports, state.words + units[i] * stride)
        if contexts.shape[1] > 0:
            set_context(unit, contexts[i])
        if math.isnan(rewards[i]):
            update_missing(unit, arms[i])
        else:
            update(unit, arms[i], rewards[i])


def learn_steps(memory: Memory, arms: Ints, rewards: Floats) -> None:
    """Update the State of a single unit with steps without contexts."""
    zeros = np.zeros(arms.size, np.int64)
    handle = Handle.of(memory.state(), memory.address(), reports=False)
    replay_shared(handle, 0, zeros, np.zeros((arms.size, 0)), arms, rewards, 0, arms.size)


def direct(function: Any, *numba_types: Any) -> Any:
    """Return the machine code of a kernel for arguments of these types; a call of it skips numba's type dispatch."""
    return function if config.DISABLE_JIT else function.compile(numba_types)
