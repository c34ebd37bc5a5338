"""Shared by policies with a hidden Markov chain: the model that is given, and Thompson sampling of its state."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline
from larl._core.validation import InvalidValue
from larl.policies._probabilities import Mask
from larl.worlds.latent_markov import LatentMarkov

Floats = NDArray[np.float64]


def given_model(policy: str, transition: Any, means: Any, sigma_r: Any) -> LatentMarkov | None:
    """Return the model of a policy's parameters; None if all are None."""
    values = {"transition": transition, "means": means, "sigma_r": sigma_r}
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return None
    for name, value in values.items():
        if value is None:
            raise InvalidValue(policy, name, None, "a value: transition, means and sigma_r are given together")
    try:
        return LatentMarkov(**given)
    except InvalidValue as error:
        raise InvalidValue(policy, error.name, error.value, error.accepted) from error


def known_chain(policy: str, model: Any, arms: int) -> LatentMarkov:
    """Return the `LatentMarkov` that a policy knows: its own model or the world."""
    if not isinstance(model, LatentMarkov):
        raise InvalidValue(policy, "world", model, "a larl.worlds.LatentMarkov, whose parameters it knows")
    if arms != model.arms:
        raise InvalidValue(policy, "arms", arms, f"{model.arms}, as many as its model has")
    return model


@inline
def best_arm_of_state(means: Floats, state: int) -> int:
    """Return the lowest arm with the largest mean in a state."""
    best, choice = -math.inf, 0
    for arm in range(means.shape[1]):
        if means[state, arm] > best:
            best, choice = means[state, arm], arm
    return choice


@inline
def best_available_arm(means: Floats, state: int, available: Mask) -> int:
    """Return the lowest available arm with the largest mean in a state."""
    best, choice = -math.inf, 0
    for arm in range(means.shape[1]):
        if available[arm] and means[state, arm] > best:
            best, choice = means[state, arm], arm
    return choice


@inline
def draw_index(probabilities: Floats, uniform: float) -> int:
    """Return an index with its probability, given a number in [0, 1); never one with probability 0."""
    choice, total = 0, 0.0
    for i in range(probabilities.size):
        if probabilities[i] > 0.0:
            choice = i
            total += probabilities[i]
            if uniform < total:
                break
    return choice
