"""Random bits of a study: of its policies, forced exploration, fallback decisions and ids of decisions.

Version 2 takes them from BLAKE2b, keyed by a secret of the study that no response contains: what was decided, the ids
and the seed say nothing about other steps. Version 1, of studies that earlier versions created, takes them from the
streams of a simulation, in which one id reveals all others.
"""

import re
from hashlib import blake2b
from secrets import token_bytes
from struct import Struct
from typing import NamedTuple, Protocol

import numpy as np

from larl._core.random import FALLBACK, bits_at, stream_key
from larl.live.streams import StreamKeys, UnitStreams

SECRET_SIZE = 32  # bytes
TWO_KEYS = Struct("<QQ")
REF = re.compile(rf"2:([0-9a-f]{{{2 * SECRET_SIZE}}})")  # version and secret


class StudyStreams(Protocol):
    """The random bits of a study, by number of the unit and step."""

    def __call__(self, number: int) -> UnitStreams:
        """The streams of a unit's agent."""

    def fallback(self, number: int, t: int) -> int:
        """64 random bits that choose the arm if the policy fails."""


class SeededStreams(NamedTuple):
    """Version 1: the streams of trial `number` of a simulation."""

    seed: int

    def __call__(self, number: int) -> StreamKeys:
        """The streams of a unit's agent."""
        return StreamKeys.of(self.seed, number)

    def fallback(self, number: int, t: int) -> int:
        """64 random bits that choose the arm if the policy fails."""
        return int(bits_at(np.uint64(stream_key(self.seed, number, FALLBACK)), t))


class KeyedStreams:
    """Version 2: every step of every unit has its own bits, from a keyed one-way function."""

    def __init__(self, secret: bytes, seed: int) -> None:
        self._hash = blake2b(seed.to_bytes(8, "little"), key=secret, digest_size=32, person=b"larl streams")

    def __call__(self, number: int) -> "KeyedUnitStreams":
        """The streams of a unit's agent."""
        return KeyedUnitStreams(self._hash, number)

    def fallback(self, number: int, t: int) -> int:
        """64 random bits that choose the arm if the policy fails."""
        return int.from_bytes(self(number).bits(t)[24:], "little")


class KeyedUnitStreams:
    """The streams of one unit. A digest of 32 bytes for each step has the bits of all purposes, 8 bytes for each."""

    def __init__(self, study_hash: blake2b, number: int) -> None:
        self._hash = study_hash.copy()
        self._hash.update(number.to_bytes(8, "little"))

    def bits(self, t: int) -> bytes:
        """The bits of step t: for the policy, forced exploration, the id and the fallback."""
        step = self._hash.copy()
        step.update(t.to_bytes(8, "little"))
        return step.digest()

    def keys(self, t: int) -> tuple[np.uint64, np.uint64]:
        """The keys of the policy and of forced exploration at step t."""
        policy, exploration = TWO_KEYS.unpack_from(self.bits(t))
        return np.uint64(policy), np.uint64(exploration)

    def id_suffix(self, t: int) -> str:
        """Sixteen hex digits: the random part of the decision id of step t."""
        return self.bits(t)[16:24].hex()


def new_secret() -> bytes:
    """Return the secret of a new study."""
    return token_bytes(SECRET_SIZE)


def secret_to_ref(secret: bytes | None) -> str | None:
    """Return version and secret as the journal records them; None for version 1."""
    return None if secret is None else f"2:{secret.hex()}"


def ref_to_secret(ref: str | None) -> bytes | None:
    """Return the secret that the journal records, None for version 1; the error does not contain it."""
    if ref is None:
        return None
    found = REF.fullmatch(ref)
    if found is None:
        raise ValueError("its column ref is damaged, or was written by a later version of larl")
    return bytes.fromhex(found[1])
