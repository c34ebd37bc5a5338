"""The two things an agent does with a policy's State, compiled: choose an arm, and go through what happened."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import entry_point, inline
from larl._core.random import bits_to_uniform, empty_bits, random_bits, seed_bits, uniform
from larl.policies._contract import act, action_probabilities, has_nan, predict, set_context, update, update_missing
from larl.policies._probabilities import Floats, Mask

Ints = NDArray[np.int64]


@inline
def by_min_probability(u: float, min_probability: float, available: Mask, count: int) -> int:
    """The arm chosen by forced exploration: each of `count` open arms for a share `min_probability` of u, else −1."""
    if u >= count * min_probability:
        return -1
    left = min(int(u / min_probability), count - 1)
    for arm in range(available.size):
        if available[arm]:
            if left == 0:
                return arm
            left -= 1
    return -1


@inline
def by_probabilities(u: float, probabilities: Floats) -> int:
    """An arm, each for a share `probabilities[arm]` of the u in [0, 1)."""
    chosen = -1
    for arm in range(probabilities.size):
        if probabilities[arm] > 0.0 and u >= 0.0:
            chosen = arm
        u -= probabilities[arm]
    return chosen


@entry_point
def choose(
    state: Any,
    context: Floats,
    key: np.uint64,
    coin: np.uint64,
    t: int,
    min_probability: float,
    available: Mask,
    probabilities: Floats,
    notes: Floats,
) -> int:
    """The arm of step t. Every open arm has probability `min_probability`; the policy chooses with the rest.

    Into `probabilities` the law of the choice; into `notes` what the policy expects of the arm, its width, and whether
    the arm was forced by `min_probability`. Raises ArithmeticError if the State contains nan, or the probabilities or
    the prediction are invalid.
    """
    set_context(state, context)
    if has_nan(state):
        raise ArithmeticError("its State has numbers that are nan")
    action_probabilities(state, available, probabilities)
    arms, count, total = probabilities.size, 0, 0.0
    for arm in range(arms):
        count += available[arm]
        total += probabilities[arm] if probabilities[arm] >= 0.0 else math.nan
    if not abs(total - 1.0) <= 1e-6:
        raise ArithmeticError("its probabilities are not in [0, 1], or do not sum to 1")
    chosen = by_min_probability(bits_to_uniform(random_bits(coin, t)), min_probability, available, count)
    explored = chosen >= 0
    if not explored:
        bits = empty_bits()
        seed_bits(bits, random_bits(key, t))
        chosen = act(state, bits) if count == arms else by_probabilities(uniform(bits), probabilities)
        if not 0 <= chosen < arms:
            raise ValueError("a policy chose an arm that does not exist")
    for arm in range(arms):
        if available[arm]:
            probabilities[arm] = min_probability + (1.0 - count * min_probability) * probabilities[arm]
    notes[0], notes[1] = predict(state, chosen)
    if math.isinf(notes[0]):
        raise ArithmeticError("its forecast is infinite")
    notes[2] = 1.0 if explored else 0.0
    return chosen


@inline
def teach(state: Any, context: Floats, arm: int, reward: float) -> None:
    """Teach a State one step. A reward of nan is missing; an arm of −1, and nothing was played."""
    set_context(state, context)
    if math.isnan(reward):
        update_missing(state, arm)
    else:
        update(state, arm, reward)


@entry_point
def go_through(state: Any, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int) -> None:
    """Teach a State the steps first … end − 1."""
    for i in range(first, end):
        teach(state, contexts[i], arms[i], rewards[i])
