"""Rewards of a known range as numbers in [0, 1]."""

from larl._core.compile import inline


@inline
def unit_reward(reward: float, low: float, high: float) -> float:
    """Map a reward from [low, high] to [0, 1]; rewards outside are clipped."""
    return min(max((reward - low) / (high - low), 0.0), 1.0)
