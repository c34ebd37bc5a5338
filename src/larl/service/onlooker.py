"""Minds to be looked at: made from the journal, beside those that decide."""

import math
import threading
from collections import OrderedDict
from functools import partial
from typing import Any

import sqlalchemy as sql

from larl.service.database import StorageError, journal, snapshots
from larl.service.evidence import Weights, weighs
from larl.service.journal import Journal
from larl.service.minds import MADE_BY, Mind
from larl.service.seats import Study
from larl.service.studies import LEARNT_FROM
from larl.service.watch import Watch

HELD = 8  # minds
LONGEST = 5_000  # rows that are followed for a look
SECONDS = 2.0


class Onlooker:
    """Looks into the minds of units. It decides nothing and writes nothing."""

    def __init__(self, book: Journal) -> None:
        self._book, self._lock, self._watch = book, threading.Lock(), Watch(SECONDS)
        self._held: OrderedDict[tuple[str, str, int], tuple[int, Mind]] = OrderedDict()  # by version of the policy

    def close(self) -> None:
        """Look no more."""
        self._watch.close()

    def can(self, study: Study) -> bool:
        """Whether there is evidence to be seen in a study."""
        return not study.terms.pooled and weighs(study.terms.spec)

    def evidence(self, study: Study, unit: str, number: int) -> Weights | None:
        """What a unit's policy weighs; None where it weighs nothing, and where it would take too long to find out."""
        if not self.can(study):
            return None
        place = (study.terms.study, unit, study.terms.version)
        with self._lock:
            try:
                seq, mind = self._follow(study, unit, number, *self._held.pop(place, (0, None)))
                found: Weights | None = self._watch.call(mind.evidence)
                if found is not None and not all(map(math.isfinite, found.values())):
                    return None
            except StorageError:
                raise
            except Exception:  # whatever a policy raises: who decides has told of it already
                return None
            self._held[place] = seq, mind
            if len(self._held) > HELD:
                self._held.popitem(last=False)
            return found

    def _follow(self, study: Study, unit: str, number: int, after: int, mind: Mind | None) -> tuple[int, Mind]:
        """A mind after all rows that there are, and the last of these."""
        terms, state = study.terms, None
        if mind is None and (snapshot := self._snapshot(terms.study, unit, terms.version)) is not None:
            after, state = snapshot.seq, snapshot.state
        here = (journal.c.study == terms.study, journal.c.unit == unit, journal.c.seq > after)
        rows = self._book.select(*here, journal.c.kind.in_(LEARNT_FROM), limit=LONGEST + 1)
        if len(rows) > LONGEST:
            raise OverflowError("there is too much to follow")
        followed = self._watch.call(partial(Mind.follow, terms, number, state, rows, mind))
        return max([after, *(row.seq for row in rows)]), followed

    def _snapshot(self, study: str, unit: str, version: int) -> Any:
        where = (snapshots.c.study == study, snapshots.c.unit == unit, snapshots.c.made_by == f"{MADE_BY}-{version}")
        with self._book.database.reading() as connection:
            return connection.execute(sql.select(snapshots).where(*where)).first()
