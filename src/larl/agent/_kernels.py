"""The two things an agent does with a policy's State, compiled: choose an arm, and go through what happened."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._compile import entry, inline
from larl._words import no_bits, seed_bits, uniform, word, word_to_uniform
from larl.policies._contract import act, has_nan, odds, outlook, present, skip, update
from larl.policies._odds import Floats, Open

Ints = NDArray[np.int64]


@inline
def by_floor(u: float, floor: float, available: Open, count: int) -> int:
    """Which of the `count` open arms the floor chooses: each for a share `floor` of the u in [0, 1), else −1."""
    if u >= count * floor:
        return -1
    left = min(int(u / floor), count - 1)
    for arm in range(available.size):
        if available[arm]:
            if left == 0:
                return arm
            left -= 1
    return -1


@inline
def by_odds(u: float, odds: Floats) -> int:
    """An arm, each for a share `odds[arm]` of the u in [0, 1)."""
    chosen = -1
    for arm in range(odds.size):
        if odds[arm] > 0.0 and u >= 0.0:
            chosen = arm
        u -= odds[arm]
    return chosen


@entry
def choose(
    state: Any, context: Floats, key: np.uint64, coin: np.uint64, t: int, floor: float,
    available: Open, probabilities: Floats, notes: Floats,
) -> int:  # fmt: skip
    """The arm of step t. Every open arm has probability `floor`; what is left goes to the policy's own choice.

    Into `probabilities` the law of the choice; into `notes` what the policy expects of the arm, its width, and whether
    the floor chose. Raises ArithmeticError if the State has nan in it, or the probabilities or the forecast are not
    valid.
    """
    present(state, context)
    if has_nan(state):
        raise ArithmeticError("its State has numbers that are nan")
    odds(state, available, probabilities)
    arms, count, total = probabilities.size, 0, 0.0
    for arm in range(arms):
        count += available[arm]
        total += probabilities[arm] if probabilities[arm] >= 0.0 else math.nan
    if not abs(total - 1.0) <= 1e-6:
        raise ArithmeticError("its probabilities are not in [0, 1], or do not sum to 1")
    chosen = by_floor(word_to_uniform(word(coin, t)), floor, available, count)
    explored = chosen >= 0
    if not explored:
        bits = no_bits()
        seed_bits(bits, word(key, t))
        chosen = act(state, bits) if count == arms else by_odds(uniform(bits), probabilities)
        if not 0 <= chosen < arms:
            raise ValueError("a policy chose an arm that does not exist")
    for arm in range(arms):
        if available[arm]:
            probabilities[arm] = floor + (1.0 - count * floor) * probabilities[arm]
    notes[0], notes[1] = outlook(state, chosen)
    if math.isinf(notes[0]):
        raise ArithmeticError("its forecast is infinite")
    notes[2] = 1.0 if explored else 0.0
    return chosen


@inline
def teach(state: Any, context: Floats, arm: int, reward: float) -> None:
    """Teach a State one step. A reward of nan is missing; an arm of −1, and nothing was played."""
    present(state, context)
    if math.isnan(reward):
        skip(state, arm)
    else:
        update(state, arm, reward)


@entry
def go_through(state: Any, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int) -> None:
    """Teach a State the steps first … end − 1."""
    for i in range(first, end):
        teach(state, contexts[i], arms[i], rewards[i])
