"""One step of a bare State, for tests: what simulations and agents call, on the State's own arrays."""

import math
from typing import Any

import numpy as np

from larl._core.compile import kernel
from larl._core.random import empty_bits, seed_bits
from larl._core.states import Memory, floats_at, leaves, segments, words_of
from larl.live import kernels
from larl.live.kernels import replay_shared
from larl.policies._contract import act, update
from larl.policies._contract import predict as predict_
from larl.policies._deployment import Deployment
from larl.policies._entry import Handle
from larl.policies._pooling import shared_fields
from larl.policies.random import Random


@kernel
def _act(state: Handle, seed: np.uint64) -> int:
    bits = empty_bits()
    seed_bits(bits, seed)
    return act(state, bits)


@kernel
def _predict(state: Handle, arm: int) -> tuple[float, float]:
    return predict_(state, arm)


_latest: dict[int, tuple[Any, Handle, Any]] = {}  # States, which are immutable, with their handles and words


def handle_of(state: Any) -> Handle:
    """The handle of a State. It is valid as long as the State is among the latest ones."""
    if id(state) not in _latest:
        if len(_latest) == 20:
            del _latest[next(iter(_latest))]
        words = words_of(state)
        _latest[id(state)] = state, Handle.of(state, words.ctypes.data), words
    return _latest[id(state)][1]


def units_of(state: Any, units: int) -> Memory:
    """The States of units that pool what they learn."""
    return Memory(state, units, shared_fields)


def decide(state: Any, seed: int) -> int:
    """Return the arm that the policy chooses, given any 64 random bits as an integer."""
    return int(_act(handle_of(state), np.uint64(seed)))


def learn(state: Any, arm: int, reward: float, context: Any = ()) -> None:
    """Update the State with the reward of an arm; nan means that the reward is missing."""
    learn_all(state, [arm], [reward], [context])


def learn_all(state: Any, arms: Any, rewards: Any, contexts: Any = None) -> None:
    """Update the State with the rewards of arms."""
    played, values = np.array(arms, np.int64).reshape(-1), np.array(rewards, float).reshape(-1)
    given = np.zeros((played.size, 0)) if contexts is None else np.array(contexts, float)
    replay_shared(handle_of(state), 0, np.zeros(played.size, np.int64), given, played, values, 0, played.size)


@kernel
def _play(state: Handle, arms: Any, rewards: Any, choices: Any) -> None:
    bits = empty_bits()
    for t in range(arms.size):
        seed_bits(bits, np.uint64(0))
        choices[t] = act(state, bits)
        update(state, arms[t], rewards[t])


def choices(state: Any, arms: Any, rewards: Any) -> Any:
    """Return the arm that the policy would choose at each step; it learns from the arms and rewards that are given."""
    result = np.zeros(len(arms), np.int64)
    _play(handle_of(state), np.array(arms, np.int64), np.array(rewards, float), result)
    return result


def predict(state: Any, arm: int) -> tuple[float, float]:
    """Predicted reward of an arm, and the width of its interval."""
    return _predict(handle_of(state), arm)


@kernel
def _choose_often(record: int, draws: int, counts: Any, seen: Any) -> None:
    numbers = floats_at(record, kernels.RECORD_SIZE)
    for t in range(draws):
        arm = kernels.decide(record, t)
        counts[arm] += 1
        seen[arm, 0], seen[arm, 1] = numbers[kernels.EXPECTED], numbers[kernels.WIDTH]


class Chooser:
    """Decisions of agents with a bare State."""

    def __init__(self, state: Any, arms: int, rules: Any = None) -> None:
        given = Deployment().rules("test", Random(), [str(arm) for arm in range(arms)]) if rules is None else rules
        words = words_of(state)
        handle = Handle.of(state, words.ctypes.data)
        checked = segments(each for each in leaves(state) if each.is_checked and each.array.dtype == np.float64)
        self.probabilities, self.available, rule_words = np.zeros(arms), np.ones(arms, np.bool_), words_of(given)
        self.record = np.zeros(kernels.RECORD_SIZE, np.int64)
        self.record[[kernels.ENTRY, kernels.REPORTS, kernels.STATE]] = handle
        self.record[kernels.DECIDING] = handle.words
        self.record[[kernels.RULES, kernels.CHECKED]] = rule_words.ctypes.data, checked.ctypes.data
        self.record[[kernels.ARMS, kernels.CHECKED_SIZE]] = arms, len(checked)
        self.record[kernels.AVAILABLE] = self.available.ctypes.data
        self.record[kernels.PROBABILITIES] = self.probabilities.ctypes.data
        self.record[kernels.DRAW], self.record.view(np.float64)[kernels.MINIMUM] = given.draw, given.equal_minimum
        self.record[[kernels.POLICY_KEY, kernels.EXPLORATION_KEY]] = 7, 8
        self._kept = state, words, checked, rule_words, given

    def choose(self, t: int, available: Any = True) -> int:
        """The arm of step t."""
        self.available[:] = available
        return int(kernels.decide(int(self.record.ctypes.data), t))

    def choose_often(self, draws: int, available: Any = True) -> tuple[Any, Any]:
        """How often each arm is chosen in the first steps, and its prediction, nan for an arm that never is."""
        self.available[:] = available
        counts, seen = np.zeros(self.available.size, np.int64), np.full((self.available.size, 2), math.nan)
        _choose_often(int(self.record.ctypes.data), draws, counts, seen)
        return counts, seen

    @property
    def prediction(self) -> Any:
        """Expected reward of the chosen arm, and the width of its interval."""
        return self.record.view(np.float64)[[kernels.EXPECTED, kernels.WIDTH]]
