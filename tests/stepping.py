"""One step of a bare State, for tests: `act` with given random bits, update and prediction as in agents, compiled."""

from typing import Any

import numpy as np

from larl._core.compile import entry_point
from larl._core.random import empty_bits, seed_bits
from larl.live.kernels import choose, replay
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


def predict(state: Any, arm: int) -> tuple[float, float]:
    """Predicted reward of an arm, and the width of its interval."""
    probabilities, details, only, key = np.zeros(2), np.zeros(3), np.arange(2) == arm, np.uint64(0)
    choose(state, np.zeros(0), key, key, 0, 0.0, only, probabilities, details)
    return float(details[0]), float(details[1])
