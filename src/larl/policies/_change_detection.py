"""Shared by policies that detect changes: the largest upper confidence bound, and the cycle of forced exploration."""

import math
from typing import Any

import numpy as np

from larl._core.compile import inline
from larl.policies._contract import predict
from larl.policies._probabilities import Mask


@inline
def largest_bound(state: Any, available: Mask) -> int:
    """Return the first available arm with the largest mean + bonus of `predict`; a bonus of ∞ comes first."""
    best, choice = -math.inf, -1
    for arm in range(available.size):
        if available[arm]:
            mean, bonus = predict(state, arm)
            bound = math.inf if bonus == math.inf else mean + bonus
            if choice < 0 or bound > best:
                best, choice = bound, arm
    return choice


@inline
def cycle_or_largest_bound(state: Any, time: int, period: int, available: Mask) -> int:
    """Return arm a in step a of each period of steps if it is available; else the arm of `largest_bound`."""
    position = time % period
    if position < available.size and available[position]:
        return position
    return largest_bound(state, available)


@inline
def all_arms(arms: int) -> Mask:
    """Return the mask of a decision between all arms."""
    return np.ones(arms, np.bool_)
