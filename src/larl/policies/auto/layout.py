"""How a block of particles is laid out: an array (rows, LANES) with a column for each particle.

A row is one number of all of them. What stands where depends on nothing but how many arms there are and the largest
order; a population of a smaller one leaves rows unused.
"""

from typing import NamedTuple

import numpy as np

from larl._core.compile import inline

LATENT, WANDERING, TURNING = 0, 1, 2  # forms


class Rows(NamedTuple):
    """Where in a block things stand: the first row of each."""

    arms: int
    order: int  # the largest p
    theta: int  # coordinates
    sign: int  # (arms) of β
    phi: int  # (order)
    beta: int  # (arms)
    kappa: int  # (arms)
    noise: int  # (arms)
    start: int
    own: int
    keep: int
    mean: int  # (arms + order)
    cov: int  # (triangle of arms + order), packed
    volume: int  # Σ log S over the rewards seen, S the variance of the error
    square: int  # Σ e²/S, e the error
    past: int  # as mean … square, at the beginning of the window that can be replayed
    later: int  # the same, at the beginning of the next window
    before: int  # log likelihood without the last reward
    after: int  # and with it
    weight: int  # logarithm
    product: int  # from here on scratch: of the last few S
    one: int
    two: int
    three: int
    work: int  # (arms + order)
    end: int


def rows_of(arms: int, order: int) -> Rows:
    """The rows of a block for particles of any order up to `order`."""
    size = arms + order
    filtered = size + size * (size + 1) // 2 + 2
    heights = {
        "theta": arms + 4 + max(order, arms + 2),
        "sign": arms,
        "phi": order,
        "beta": arms,
        "kappa": arms,
        "noise": arms,
        "start": 1,
        "own": 1,
        "keep": 1,
        "mean": size,
        "cov": size * (size + 1) // 2,
        "volume": 1,
        "square": 1,
        "past": filtered,
        "later": filtered,
        "before": 1,
        "after": 1,
        "weight": 1,
        "product": 1,
        "one": 1,
        "two": 1,
        "three": 1,
        "work": size,
    }
    starts = np.concatenate([[0], np.cumsum(list(heights.values()))]).tolist()
    return Rows(arms, order, *starts)


class Kind(NamedTuple):
    """What the particles of a population have in common."""

    p: int  # 1 where levels wander, 2 where the state turns
    form: int


@inline
def entry(i: int, j: int) -> int:
    """The place of entry (i, j) of a packed symmetric matrix."""
    high, low = max(i, j), min(i, j)
    return (high * (high + 1) >> 1) + low
