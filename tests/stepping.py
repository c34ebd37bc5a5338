"""One step of a bare State, for tests: the compiled `act` with given random bits, and the update that agents use."""

from typing import Any

import numpy as np

from larl._core.compile import entry_point
from larl._core.random import empty_bits, seed_bits
from larl.live.kernels import replay
from larl.policies._contract import act


@entry_point
def _act(state: Any, seed: np.uint64) -> int:
    bits = empty_bits()
    seed_bits(bits, seed)
    return act(state, bits)


def decide(state: Any, seed: int) -> int:
    """Return the arm that the policy chooses, given any 64 random bits as an integer."""
    return int(_act(state, np.uint64(seed)))


def learn(state: Any, arm: int, reward: float, context: Any = ()) -> None:
    """Update the State with the reward of an arm; nan means that the reward is missing."""
    replay(state, np.array([context], dtype=float), np.array([arm]), np.array([float(reward)]), 0, 1)
