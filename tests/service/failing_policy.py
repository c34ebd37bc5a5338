"""A policy that fails in one of several ways after a number of rewards."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from larl.policies import REGISTRY, Policy, bind

# Failures.
RAISES, HANGS, NAN_STATE, INFINITE_STATE, NAN_PROBABILITY, NEGATIVE_PROBABILITY = range(1, 7)
SUM_OF_TWO = 7  # the probabilities sum to 2
IMPOSSIBLE_ARM = 8  # it plays an arm to which it gives probability 0
ITERATIONS = 5 * 10**8  # of the loop of a policy that hangs: several seconds


class FailingState(NamedTuple):
    """The failure, after how many rewards it happens, the number of rewards, bits for the loop, and means."""

    failure: Any
    after: Any
    rewards: Any
    bits: Any
    mean: Any


def act(state: Any, bits: Any) -> int:
    return 1 if state.failure[0] == IMPOSSIBLE_ARM and state.rewards[0] >= state.after[0] else 0


def update(state: Any, arm: int, reward: float) -> None:
    state.rewards[0] += 1
    if state.rewards[0] < state.after[0]:
        return
    if state.failure[0] == RAISES:
        raise ValueError("not today")
    if state.failure[0] == HANGS:
        bits = state.bits[0]
        for _ in range(ITERATIONS):
            bits ^= bits << np.uint64(13)  # the compiler cannot shorten this
            bits ^= bits >> np.uint64(7)
            bits ^= bits << np.uint64(17)
        state.bits[0] = bits
    elif state.failure[0] == NAN_STATE:
        state.mean[0] = np.nan
    elif state.failure[0] == INFINITE_STATE:
        state.mean[1] = -np.inf


def predict(state: Any, arm: int) -> tuple[float, float]:
    return state.mean[arm], 0.0


def action_probabilities(state: Any, available: Any, out: Any) -> None:
    left = 1.0
    for arm in range(out.size):
        out[arm] = left if available[arm] else 0.0
        left -= out[arm]
    if state.rewards[0] >= state.after[0]:
        if state.failure[0] == NAN_PROBABILITY:
            out[1] = np.nan
        elif state.failure[0] == NEGATIVE_PROBABILITY:
            out[0], out[1] = 1.5, -0.5
        elif state.failure[0] == SUM_OF_TWO:
            out[0], out[1] = 1.0, 1.0


bind(FailingState, act, update, "FailingPolicy", predict=predict, action_probabilities=action_probabilities)


@dataclass(frozen=True)
class FailingPolicy(Policy):
    """A policy that fails after a number of rewards."""

    failure: int = RAISES
    after: int = 2

    def init(self, arms: int, **_: Any) -> Any:
        return FailingState(
            failure=np.array([self.failure]),
            after=np.array([self.after]),
            rewards=np.zeros(1, dtype=np.int64),
            bits=np.ones(1, dtype=np.uint64),
            mean=np.arange(arms, 0.0, -1.0),
        )


@contextmanager
def registered() -> Iterator[None]:
    """Register the policy."""
    REGISTRY["FailingPolicy"] = FailingPolicy
    try:
        yield
    finally:
        del REGISTRY["FailingPolicy"]
