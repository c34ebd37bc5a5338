"""A policy that goes wrong in each of several ways, with kernels of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba.core.caching import NullCache

from larl.live.kernels import update_step
from larl.policies import REGISTRY, Policy, bind

RAISES, HANGS, IS_NO_NUMBER = 1, 2, 3
IS_INFINITE, NAN_ODDS, NEGATIVE_ODDS, ODDS_OF_TWO, OTHER_ARM = 4, 5, 6, 7, 8  # the last plays what it says it does not
TURNS = 5 * 10**8  # of a loop that takes some seconds, which is as good as for ever


class AwkwardState(NamedTuple):
    """What goes wrong, after how many rewards; how many there were; a word that is mixed while it hangs; means."""

    wrong: Any
    after: Any
    seen: Any
    word: Any
    mean: Any


def act(state: Any, word: Any) -> int:
    return 1 if state.wrong[0] == OTHER_ARM and state.seen[0] >= state.after[0] else 0


def update(state: Any, arm: int, reward: float) -> None:
    state.seen[0] += 1
    if state.seen[0] < state.after[0]:
        return
    if state.wrong[0] == RAISES:
        raise ValueError("not today")
    if state.wrong[0] == HANGS:
        word = state.word[0]
        for _ in range(TURNS):
            word ^= word << np.uint64(13)  # no compiler knows a shorter way
            word ^= word >> np.uint64(7)
            word ^= word << np.uint64(17)
        state.word[0] = word
    elif state.wrong[0] == IS_NO_NUMBER:
        state.mean[0] = np.nan
    elif state.wrong[0] == IS_INFINITE:
        state.mean[1] = -np.inf


def predict(state: Any, arm: int) -> tuple[float, float]:
    return state.mean[arm], 0.0


def action_probabilities(state: Any, available: Any, out: Any) -> None:
    left = 1.0
    for arm in range(out.size):
        out[arm] = left if available[arm] else 0.0
        left -= out[arm]
    if state.seen[0] >= state.after[0]:
        if state.wrong[0] == NAN_ODDS:
            out[1] = np.nan
        elif state.wrong[0] == NEGATIVE_ODDS:
            out[0], out[1] = 1.5, -0.5
        elif state.wrong[0] == ODDS_OF_TWO:
            out[0], out[1] = 1.0, 1.0


bind(AwkwardState, act, update, "Awkward", predict=predict, action_probabilities=action_probabilities)


@dataclass(frozen=True)
class Awkward(Policy):
    """A policy that goes wrong after so many rewards."""

    wrong: int = RAISES
    after: int = 2

    def init(self, arms: int, **_: Any) -> Any:
        word, means = np.ones(1, dtype=np.uint64), np.arange(arms, 0.0, -1.0)
        return AwkwardState(np.array([self.wrong]), np.array([self.after]), np.zeros(1, dtype=np.int64), word, means)


@contextmanager
def known() -> Iterator[None]:
    """The policy can be asked for by its name. Its machine code is kept nowhere: other processes do not know it."""
    REGISTRY["Awkward"] = Awkward
    dispatcher: Any = update_step
    before, dispatcher._cache = dispatcher._cache, NullCache()
    try:
        yield
    finally:
        dispatcher._cache = before
        del REGISTRY["Awkward"]
