"""Randomness as an argument: 64-bit words that are a pure function of (seed, trial, stream, time).

A word is splitmix64 entered at any position (Steele, Lea & Flood 2014), so no generator carries state, and every
trial, step and draw can be made on its own, in any order, on any thread.

A policy is handed `bits`, a generator made from the word of its step. `uniform(bits)`, `pick(bits, count)` and
`normal(bits)` each take fresh bits from it, so draws of one step are independent whatever their order and number.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from larl._compile import config, inline, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
START, WORLD, POLICY = np.uint64(0), np.uint64(1), np.uint64(2)  # streams: z_0…z_{k−1}, world noise, policies' words
FLOOR, IDS = np.uint64(3), np.uint64(4)  # of an agent: whether to explore, and what to call a decision
OWN = np.uint64(5)  # what is a unit's own in a world of units that differ
FALLBACK = np.uint64(6)  # of a service: what to do where the policy fails

if config.DISABLE_JIT:  # uncompiled, numpy warns when a word wraps around, as words do
    warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning, "larl._words")


@inline
def _mix(x: np.uint64) -> np.uint64:
    """splitmix64's finaliser, a bijection of 64-bit words."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inline
def word(key: np.uint64, position: int) -> np.uint64:
    """The word at `position` = 0, 1, … of the stream that starts at `key`."""
    return _mix(key + np.uint64(position + 1) * GOLDEN)


@inline
def stream(seed: int, trial: int, name: np.uint64) -> np.uint64:
    """The key of one stream of one trial."""
    return _mix(word(word(np.uint64(seed), 0), trial) ^ (name * GOLDEN))


@inline
def word_to_uniform(word: np.uint64) -> float:
    """A number in [0, 1), a multiple of 2⁻⁵³."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@inline
def word_to_index(word: np.uint64, count: int) -> int:
    """One of 0 … count−1, all equally likely (to within 2⁻³²)."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))  # type: ignore[return-value]


@inline
def normal_pair(key: np.uint64, position: int) -> tuple[float, float]:
    """Two independent standard normals (Box–Muller) from words 2·position and 2·position + 1 of a stream."""
    radius = math.sqrt(-2.0 * math.log(1.0 - word_to_uniform(word(key, 2 * position))))
    angle = 2.0 * math.pi * word_to_uniform(word(key, 2 * position + 1))
    return radius * math.cos(angle), radius * math.sin(angle)


Bits = NDArray[np.uint64]  # (3,) the word of a step, how many words and how many normals were drawn
SPLIT = np.uint64(0xD1B54A32D192ED03)  # words after the first come from a stream that normals do not use


@inline
def no_bits() -> Bits:
    """A generator that `seed_bits` is still to seed."""
    return np.empty(3, np.uint64)


@inline
def seed_bits(bits: Bits, word: np.uint64) -> None:
    """Begin a step: all draws follow from its word."""
    bits[0], bits[1], bits[2] = word, np.uint64(0), np.uint64(0)


@inline
def _next_word(bits: Bits) -> np.uint64:
    """The word of the step, then those of a stream of its own."""
    drawn = bits[1]
    bits[1] = drawn + np.uint64(1)
    return bits[0] if drawn == 0 else _mix((bits[0] ^ SPLIT) + drawn * GOLDEN)


@inline
def uniform(bits: Bits) -> float:
    """Draw a number in [0, 1), a multiple of 2⁻⁵³."""
    return word_to_uniform(_next_word(bits))


@inline
def pick(bits: Bits, count: int) -> int:
    """Draw one of 0 … count−1, all equally likely (to within 2⁻³²)."""
    return word_to_index(_next_word(bits), count)


@inline
def normal(bits: Bits) -> float:
    """Draw a standard normal."""
    drawn = bits[2]
    bits[2] = drawn + np.uint64(1)
    value, _ = normal_pair(bits[0], np.int64(drawn))  # type: ignore[arg-type]
    return value


@kernel
def stream_key(seed: int, trial: int, name: np.uint64) -> np.uint64:
    """`stream`, for Python."""
    return stream(seed, trial, name)


@kernel
def word_at(key: np.uint64, position: int) -> np.uint64:
    """`word`, for Python."""
    return word(key, position)


@kernel
def policy_word(seed: int, trial: int, t: int) -> np.uint64:
    """The word that a policy is handed at step t of a trial."""
    return word(stream(seed, trial, POLICY), t)
