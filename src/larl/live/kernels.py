"""Compiled functions of agents and cohorts: choose an arm, and replay logged steps into a State."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import entry_point, inline
from larl._core.random import bits_to_uniform, empty_bits, random_bits, seed_bits, uniform
from larl.policies._contract import act, action_probabilities, has_nan, predict, set_context, update, update_missing
from larl.policies._deployment import Rules, draw_arm
from larl.policies._pooling import unit_view
from larl.policies._probabilities import Floats, Mask, forced_arm, sample_arm

Ints = NDArray[np.int64]


@entry_point
def choose(
    state: Any,
    context: Floats,
    policy_key: np.uint64,
    exploration_key: np.uint64,
    t: int,
    min_probability: float,
    available: Mask,
    probabilities: Floats,
    details: Floats,
) -> int:
    """The arm of step t. Every available arm has probability `min_probability`; the policy chooses with the rest.

    Writes the probability of each arm to `probabilities`, and to `details` the predicted reward of the chosen arm, the
    width of its interval, and 1.0 if `min_probability` forced the arm. Raises ArithmeticError if the State contains
    nan, or the probabilities or the prediction are invalid.
    """
    set_context(state, context)
    if has_nan(state):
        raise ArithmeticError("its State contains nan")
    action_probabilities(state, available, probabilities)
    arms, count, total = probabilities.size, 0, 0.0
    for arm in range(arms):
        count += available[arm]
        total += probabilities[arm] if probabilities[arm] >= 0.0 else math.nan
    if not abs(total - 1.0) <= 1e-6:
        raise ArithmeticError("its probabilities are not in [0, 1], or do not sum to 1")
    chosen = forced_arm(bits_to_uniform(random_bits(exploration_key, t)), min_probability, available, count)
    is_forced = chosen >= 0
    if not is_forced:
        bits = empty_bits()
        seed_bits(bits, random_bits(policy_key, t))
        chosen = act(state, bits) if count == arms else sample_arm(uniform(bits), probabilities)
        if not 0 <= chosen < arms:
            raise ValueError("a policy chose an arm that does not exist")
    for arm in range(arms):
        if available[arm]:
            probabilities[arm] = min_probability + (1.0 - count * min_probability) * probabilities[arm]
    details[0], details[1] = predict(state, chosen)
    if math.isinf(details[0]):
        raise ArithmeticError("its prediction is infinite")
    details[2] = 1.0 if is_forced else 0.0
    return chosen


@entry_point
def choose_deployed(
    state: Any,
    context: Floats,
    policy_key: np.uint64,
    exploration_key: np.uint64,
    t: int,
    rules: Rules,
    available: Mask,
    probabilities: Floats,
    details: Floats,
) -> int:
    """The arm of step t, as `choose`, with the allocation, minimum probabilities and warm-up of `rules`."""
    set_context(state, context)
    if has_nan(state):
        raise ArithmeticError("its State contains nan")
    bits = empty_bits()
    seed_bits(bits, random_bits(policy_key, t))
    chosen, is_forced = draw_arm(state, rules, t, bits, exploration_key, available, probabilities)
    details[0], details[1] = predict(state, chosen)
    if math.isinf(details[0]):
        raise ArithmeticError("its prediction is infinite")
    details[2] = 1.0 if is_forced else 0.0
    return chosen


@inline
def update_step(state: Any, context: Floats, arm: int, reward: float) -> None:
    """Update a State with one step. A reward of nan is missing; an arm of −1 means that no arm was played."""
    set_context(state, context)
    if math.isnan(reward):
        update_missing(state, arm)
    else:
        update(state, arm, reward)


@entry_point
def replay(state: Any, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int) -> None:
    """Update a State with the steps first … end − 1."""
    for i in range(first, end):
        update_step(state, contexts[i], arms[i], rewards[i])


@entry_point
def replay_shared(
    stacked_state: Any, units: Ints, contexts: Floats, arms: Ints, rewards: Floats, first: int, end: int
) -> None:
    """Update the stacked State of a cohort with the steps first … end − 1; step i belongs to unit `units[i]`."""
    for i in range(first, end):
        update_step(unit_view(stacked_state, units[i]), contexts[i], arms[i], rewards[i])
