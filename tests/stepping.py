"""One step of a bare State, for tests: the compiled `act` with a word of one's own, and an agent's way to learn."""

from typing import Any

import numpy as np

from larl._core.compile import entry_point
from larl._core.random import empty_bits, seed_bits
from larl.live.kernels import replay
from larl.policies._contract import act

NOTHING = np.zeros((1, 0))


@entry_point
def _act(state: Any, word: np.uint64) -> int:
    bits = empty_bits()
    seed_bits(bits, word)
    return act(state, bits)


def decide(state: Any, word: int) -> int:
    """The arm that the State's policy chooses, given any word from 0 to 2⁶⁴ − 1."""
    return int(_act(state, np.uint64(word)))


def learn(state: Any, arm: int, reward: float) -> None:
    """Teach the State what came of an arm; a reward of nan is missing."""
    replay(state, NOTHING, np.array([arm]), np.array([float(reward)]), 0, 1)
