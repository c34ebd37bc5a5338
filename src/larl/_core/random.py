"""Counter-based random numbers: 64 random bits as a pure function of (seed, trial, stream, position).

The bits are splitmix64's output at any position (Steele, Lea & Flood 2014). No generator has state, so every trial,
step and draw can be computed independently, in any order and on any thread.

A policy gets `bits`, the source of random bits of one step. `uniform(bits)`, `pick(bits, count)` and `normal(bits)`
each use fresh bits, so the draws of one step are independent, whatever their order and number.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import config, inline, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
START, WORLD, POLICY = np.uint64(0), np.uint64(1), np.uint64(2)  # streams: z_0…z_{k−1}, world noise, policies
EXPLORATION, IDS = np.uint64(3), np.uint64(4)  # of an agent: forced exploration, ids of decisions
UNIT_PARAMETERS = np.uint64(5)  # a unit's own parameters in a heterogeneous world
FALLBACK = np.uint64(6)  # of a service: the decision if the policy fails

if config.DISABLE_JIT:  # uncompiled, numpy warns about unsigned overflow, which is intended here
    warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning, "larl._core.random")


@inline
def _mix(x: np.uint64) -> np.uint64:
    """splitmix64's finaliser, a bijection of 64-bit integers."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inline
def random_bits(key: np.uint64, position: int) -> np.uint64:
    """The 64 bits at `position` = 0, 1, … of the stream `key`."""
    return _mix(key + np.uint64(position + 1) * GOLDEN)


@inline
def stream(seed: int, trial: int, name: np.uint64) -> np.uint64:
    """The key of one stream of one trial."""
    return _mix(random_bits(random_bits(np.uint64(seed), 0), trial) ^ (name * GOLDEN))


@inline
def bits_to_uniform(bits: np.uint64) -> float:
    """A number in [0, 1), a multiple of 2⁻⁵³."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@inline
def bits_to_index(bits: np.uint64, count: int) -> int:
    """One of 0 … count−1, all equally likely (to within 2⁻³²)."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))  # type: ignore[return-value]


@inline
def normal_pair(key: np.uint64, position: int) -> tuple[float, float]:
    """Two independent standard normals (Box–Muller) from positions 2·position and 2·position + 1 of a stream."""
    radius = math.sqrt(-2.0 * math.log(1.0 - bits_to_uniform(random_bits(key, 2 * position))))
    angle = 2.0 * math.pi * bits_to_uniform(random_bits(key, 2 * position + 1))
    return radius * math.cos(angle), radius * math.sin(angle)


Bits = NDArray[np.uint64]  # (3,) the first 64 bits of a step; the number of draws of 64 bits; that of normals
SPLIT = np.uint64(0xD1B54A32D192ED03)  # bits after the first 64 come from a stream that normals do not use


@inline
def empty_bits() -> Bits:
    """A source of bits before `seed_bits` sets it."""
    return np.empty(3, np.uint64)


@inline
def seed_bits(bits: Bits, first: np.uint64) -> None:
    """Start a step: its first 64 bits determine all draws."""
    bits[0], bits[1], bits[2] = first, np.uint64(0), np.uint64(0)


@inline
def _next_bits(bits: Bits) -> np.uint64:
    """The first 64 bits of the step, then those of a separate stream."""
    drawn = bits[1]
    bits[1] = drawn + np.uint64(1)
    return bits[0] if drawn == 0 else _mix((bits[0] ^ SPLIT) + drawn * GOLDEN)


@inline
def uniform(bits: Bits) -> float:
    """Draw a number in [0, 1), a multiple of 2⁻⁵³."""
    return bits_to_uniform(_next_bits(bits))


@inline
def pick(bits: Bits, count: int) -> int:
    """Draw one of 0 … count−1, all equally likely (to within 2⁻³²)."""
    return bits_to_index(_next_bits(bits), count)


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
def bits_at(key: np.uint64, position: int) -> np.uint64:
    """`random_bits`, for Python."""
    return random_bits(key, position)


@kernel
def policy_bits(seed: int, trial: int, t: int) -> np.uint64:
    """The first 64 bits that a policy gets at step t of a trial."""
    return random_bits(stream(seed, trial, POLICY), t)
