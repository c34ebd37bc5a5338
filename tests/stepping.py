"""One step of a bare State, for tests: the compiled `act` with a word of one's own, and an agent's way to learn."""

from typing import Any

import numpy as np

from larl._compile import entry
from larl._words import no_bits, seed_bits
from larl.agent._kernels import go_through
from larl.policies._contract import act

NOTHING = np.zeros((1, 0))


@entry
def _act(state: Any, word: np.uint64) -> int:
    bits = no_bits()
    seed_bits(bits, word)
    return act(state, bits)


def decide(state: Any, word: int) -> int:
    """The arm that the State's policy chooses, given any word from 0 to 2⁶⁴ − 1."""
    return int(_act(state, np.uint64(word)))


def learn(state: Any, arm: int, reward: float) -> None:
    """Teach the State what came of an arm; a reward of nan is missing."""
    go_through(state, NOTHING, np.array([arm]), np.array([float(reward)]), 0, 1)
