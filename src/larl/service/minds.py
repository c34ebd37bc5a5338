"""What a policy has learnt, as a fold over the journal: an agent for each unit, or one cohort for a study."""

import json
import math
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from larl import __version__
from larl._core.compile import source_digest
from larl.live.agent import Agent, Decision
from larl.live.cohort import Cohort
from larl.service.evidence import Weights, evidence
from larl.service.journal import Row, text
from larl.service.terms import Terms
from larl.service.watch import Watch

MADE_BY = f"{__version__}-{source_digest()}"  # a snapshot by other code is not used
_WARM: set[str] = set()
WARMING = 300.0  # seconds that a policy may take to be compiled
COPIES = 4  # of a State that an agent keeps, at most


def warm(terms: Terms) -> Exception | None:
    """Have a policy's machine code at hand: to compile it may take minutes, and a decision must not.

    Returns why it cannot be had. Such a policy fails again when it decides, which is dealt with there.
    """
    what = text([dict(terms.policy), len(terms.arms), terms.pooling])
    if what not in _WARM:
        watch = Watch(WARMING)
        try:
            watch.call(partial(_try, terms))
        except Exception as error:
            return error
        finally:
            watch.close()
        _WARM.add(what)
    return None


def _try(terms: Terms) -> None:
    mind = Mind(terms, 0)
    mind.observe(mind.decide("unit", None, [0.0] * terms.width).id, 0.0, None)


class Mind:
    """An agent or a cohort, and how far it has followed the journal."""

    def __init__(self, terms: Terms, number: int, held: Agent | Cohort | None = None) -> None:
        self.terms, self.number = terms, number
        self.held: Any = held or terms.mind(number)
        self.fresh = 0  # rows since its last snapshot

    @classmethod
    def follow(
        cls, terms: Terms, number: int, snapshot: bytes | None, rows: Iterable[Row], mind: "Mind | None" = None
    ) -> "Mind":
        """This mind, or that of a snapshot, or else a new one, after these rows."""
        if mind is None and snapshot is not None:
            kind = Cohort if terms.pooled else Agent
            mind = cls(terms, number, kind.unpack(json.loads(zlib.decompress(snapshot))))
        mind = mind or cls(terms, number)
        for row in rows:
            mind.learn(row)
        return mind

    def snapshot(self) -> bytes:
        """All of it, as bytes."""
        self.fresh = 0
        return zlib.compress(json.dumps(self.held.pack()).encode(), 1)

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        if self.terms.pooled:
            return 0  # one a study: it stays
        return COPIES * self.terms.state_size + 48 * self.terms.patience

    def decide(self, unit: str, available: Sequence[str] | None, context: Sequence[float] | None) -> Decision:
        """Decide for a unit; the id of the decision is the study's."""
        self.fresh += 1
        self._check(unit)
        context = context if self.terms.width else None
        found: Decision = self.held.decide(*self._who(unit), available, context)
        return found._replace(id=f"{self._prefix}{found.id}")

    def _check(self, unit: str) -> None:
        """Raise ArithmeticError if the State is not finite: arms that cannot be compared must not be chosen from."""
        if not self.terms.pooled:
            state = self.held.state
        elif unit in self.held.units:
            state = self.held.state(unit)
        else:
            return
        for array in self.terms.numbers(state):
            if not math.isfinite(np.vdot(array, array)) and not np.isfinite(array).all():  # a square may be too large
                raise ArithmeticError("the policy's State is not finite")

    def played(self, unit: str, arm: str | None, context: Sequence[float] | None) -> None:
        """Somebody else has chosen."""
        self.fresh += 1
        self.held.record(*self._who(unit), arm, context if self.terms.width else None)

    def observe(self, decision: str, value: float | None, arm: str | None) -> str:
        """Learn what came of a decision; returns how that was taken."""
        self.fresh += 1
        return str(self.held.observe(decision.removeprefix(self._prefix), value, arm=arm))

    def learn(self, row: Row) -> None:
        """Follow one more row."""
        if row.kind == "unit" and self.terms.pooled:
            self.held.enter(row.unit)
        elif row.kind == "decision":
            self.played(row.unit or "", row.said["arm"], row.asked.get("context"))
        elif row.kind in ("reward", "default"):
            self.observe(row.ref or "", row.asked["value"], row.asked.get("arm"))

    def evidence(self) -> Weights | None:
        """What the policy weighs, where it weighs something and units learn each on its own."""
        return None if self.terms.pooled else evidence(self.terms.spec, self.held.state)

    @property
    def _prefix(self) -> str:
        return f"{self.terms.study}." if self.terms.pooled else f"{self.terms.study}.{self.number}-"

    def _who(self, unit: str | None) -> tuple[str, ...]:
        return (unit or "",) if self.terms.pooled else ()
