"""Random bits of agents and cohorts, by unit and step."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from larl._core.random import EXPLORATION, IDS, POLICY, bits_at, stream_key


class UnitStreams(Protocol):
    """The random bits of one unit."""

    def keys(self, t: int, /) -> tuple[np.uint64, np.uint64]:
        """The keys of the streams from whose position t the policy and forced exploration draw at step t."""

    def id_suffix(self, t: int) -> str:
        """Sixteen hex digits: the random part of the decision id of step t."""


Streams = Callable[[int], UnitStreams]  # the random bits of a unit, by its number


class StreamKeys(NamedTuple):
    """Streams of the simulation: the same keys at every step. One decision id reveals the seed."""

    policy: np.uint64
    exploration: np.uint64
    ids: np.uint64

    @classmethod
    def of(cls, seed: int, trial: int) -> "StreamKeys":
        """The keys of a unit: those of trial `trial` of a comparison."""
        return cls(*(np.uint64(stream_key(seed, trial, name)) for name in (POLICY, EXPLORATION, IDS)))

    def keys(self, _: int, /) -> tuple[np.uint64, np.uint64]:
        """The keys of the policy and of forced exploration."""
        return self.policy, self.exploration

    def id_suffix(self, t: int) -> str:
        """Sixteen hex digits: the random part of the decision id of step t."""
        return f"{int(bits_at(self.ids, t)):016x}"
