"""What is known of studies and units while they are served: a cache of the journal."""

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from larl.service.database import STORAGE_FAILED, journal
from larl.service.journal import TERMS, Row, Turn
from larl.service.minds import MADE_BY, Mind, warm
from larl.service.problems import Problem, missing
from larl.service.seats import Seat, Study
from larl.service.watch import Watch

EVERY = 64  # rows from one snapshot to the next
LONGEST_REST = 60.0  # seconds that a policy which failed again and again is left alone
LEARNT_FROM = ("unit", "decision", "reward", "default")  # kinds of rows


class Resting(Exception):
    """A policy that has just failed more than once is left alone for a while."""


class Studies:
    """All studies, and as many units as there is room for."""

    def __init__(self, watch: Watch, room: int) -> None:
        self._watch, self._room = watch, room
        self._known: dict[str, Study] = {}
        self._seats: dict[tuple[str, str], Seat] = {}
        self._held: OrderedDict[tuple[str, str], Seat] = OrderedDict()  # those with a mind, the latest used last
        self._units: dict[str, str] = {}  # units that have a seat, by what their decisions' ids begin with
        self._taken = 0  # bytes
        self._failures: dict[tuple[str, str], tuple[int, float]] = {}  # how often in a row, and until when to rest
        self._resting = False  # nobody decides

    def refresh(self, turn: Turn, names: set[str]) -> None:
        """Learn what has become of these studies."""
        for name in names:
            study = self._known.get(name)
            if study is not None and turn.alone:
                continue
            after = study.seq if study else 0
            where = (journal.c.study == name, journal.c.kind.in_(TERMS), journal.c.seq > after)
            for row in turn.select(*where):
                study = self.add(row)
            if study is not None and study.mind is not None:
                self._catch_up_all(turn, study)

    def _catch_up_all(self, turn: Turn, study: Study) -> None:
        """Let a cohort learn what other processes wrote, before anything is added to it here."""
        try:
            study.mind = self._watch.run(partial(self._follow, turn, study, 0, "", study.mind, study.mind_seq))
        except STORAGE_FAILED:
            raise
        except Exception:  # where it is needed it is made anew, and fails again if it must
            study.mind, study.mind_seq = None, 0

    def known(self, name: str) -> Study | None:
        """A study, if it is known here."""
        return self._known.get(name)

    def get(self, name: str) -> Study:
        """A study that there is."""
        if name not in self._known:
            raise missing("study", name)
        return self._known[name]

    def open(self, name: str) -> Study:
        """A study that is not closed."""
        study = self.get(name)
        if study.closed:
            raise Problem(409, f"the study was closed at {study.closed}", field="study", value=name)
        return study

    def add(self, row: Row) -> Study:
        """A row that makes a study, or changes one."""
        study = self._known.setdefault(row.study, Study())
        study.read(row)
        warm(study.terms)
        if row.kind == "policy":  # another one, which has not failed yet
            self._failures = {place: found for place, found in self._failures.items() if place[0] != row.study}
        return study

    def seated(self, name: str, unit: str) -> bool:
        """Whether a unit is known here."""
        return (name, unit) in self._seats

    def seat(self, turn: Turn, name: str, unit: str) -> Seat | None:
        """A unit as the journal knows it, if it does."""
        seat = self._seats.get((name, unit))
        if seat is None:
            seat = self._find(turn, name, unit)
            if seat is None:
                return None
            self.enter(name, seat)
        elif not turn.alone:
            self._catch_up(turn, name, seat)
        return seat

    def enter(self, name: str, seat: Seat) -> None:
        """A unit takes its seat."""
        self._seats[name, seat.unit] = seat
        self._units[f"{name}.{seat.number}"] = seat.unit

    def unit_of(self, decision: str) -> str | None:
        """The unit that a decision is of, if it has a seat."""
        return self._units.get(decision.rsplit("-", 2)[0])

    def _find(self, turn: Turn, name: str, unit: str) -> Seat | None:
        here = (journal.c.study == name, journal.c.unit == unit)
        fresh = [row for row in turn.rows if row.study == name and row.unit == unit]
        entered = turn.select(*here, journal.c.kind == "unit") + [row for row in fresh if row.kind == "unit"]
        if not entered:
            return None
        seat = Seat(unit, entered[0].number or 0, seq=entered[0].seq)
        patience = self.get(name).terms.patience
        recent = turn.select(*here, journal.c.kind == "decision", limit=patience, newest=True)
        about = turn.select(journal.c.ref.in_([row.ref for row in recent]), journal.c.kind.in_(("reward", "default")))
        for row in [*sorted([*recent, *about]), *fresh]:
            seat.read(row)
        for row in turn.select(*here, limit=1, newest=True):
            seat.seq = row.seq
        return seat

    def _catch_up(self, turn: Turn, name: str, seat: Seat) -> None:
        here = (journal.c.study == name, journal.c.unit == seat.unit, journal.c.seq > seat.seq)
        rows = turn.select(*here, journal.c.kind.in_(LEARNT_FROM))
        for row in rows:
            seat.read(row)
        if rows:
            self._drop(name, seat)  # another process has learnt more

    def mind(self, turn: Turn, study: Study, seat: Seat) -> Mind:
        """What decides for a unit, up to date. Raises whatever the policy raises."""
        name, terms = study.terms.study, study.terms
        failures, until = self._failures.get((name, "" if terms.pooled else seat.unit), (0, 0.0))
        if self._resting or time.monotonic() < until:
            raise Resting(f"it failed {failures} times in a row")
        if terms.pooled:
            if study.mind is None:
                study.mind = self._follow(turn, study, 0, "", None, 0)
            return study.mind
        if seat.mind is None or seat.version != terms.version:
            seat.mind = self._follow(turn, study, seat.number, seat.unit, None, 0)
            seat.version = terms.version
            self._taken += seat.mind.size - seat.size
            seat.size = seat.mind.size
            self._held[name, seat.unit] = seat
            self._make_room(turn)
        self._held.move_to_end((name, seat.unit))
        return seat.mind

    def _follow(self, turn: Turn, study: Study, number: int, unit: str, mind: Mind | None, after: int) -> Mind:
        """A mind after all rows that there are, those of this turn included."""
        terms, name, snapshot = study.terms, study.terms.study, None
        if mind is None:
            after = 0
            kept = turn.snapshot(name, unit)
            if kept is not None and kept.made_by == f"{MADE_BY}-{terms.version}":
                snapshot, after = kept.state, kept.seq
        here = (journal.c.study == name, journal.c.kind.in_(LEARNT_FROM), journal.c.seq > after)
        rows = turn.select(*here, *((journal.c.unit == unit,) if unit else ()))
        study.mind_seq = max([after, *(row.seq for row in rows)])
        if mind is None:
            rows += [row for row in turn.rows if row.study == name and (not unit or row.unit == unit)]
        return self._watch.policy(partial(Mind.follow, terms, number, snapshot, rows, mind))

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Meanwhile no policy is asked."""
        self._resting = True
        try:
            yield
        finally:
            self._resting = False

    def worked(self, study: Study, unit: str) -> None:
        """A policy did what it should."""
        if self._failures:
            self._failures.pop((study.terms.study, "" if study.terms.pooled else unit), None)

    def failed(self, study: Study, unit: str) -> None:
        """A policy failed: its mind may be wrong, and is made anew when it is next needed, and not too often."""
        place = (study.terms.study, "" if study.terms.pooled else unit)
        count = self._failures.get(place, (0, 0.0))[0] + 1
        rest = min(2.0**count, LONGEST_REST) if count > 1 else 0.0
        self._failures[place] = count, time.monotonic() + rest
        study.mind, study.mind_seq = None, 0
        seat = self._seats.get((study.terms.study, unit))
        if seat is not None:
            self._drop(study.terms.study, seat)

    def forget_all(self, rows: list[Row]) -> None:
        """These rows did not become facts: nothing that may know of them is kept."""
        for row in rows:
            self.forget(row.study, row.unit or "")
            if row.kind in TERMS:
                self._known.pop(row.study, None)

    def forget(self, name: str, unit: str) -> None:
        """What a study and a unit have learnt is not sure any more: the journal is asked anew."""
        study = self._known.get(name)
        if study is not None:
            study.mind, study.mind_seq = None, 0
        seat = self._seats.pop((name, unit), None)
        if seat is not None:
            self._units.pop(f"{name}.{seat.number}", None)
            self._drop(name, seat)

    def settle(self, rows: list[Row]) -> None:
        """These rows are facts now, and have numbers."""
        for row in rows:
            seat = self._seats.get((row.study, row.unit or ""))
            if seat is not None and row.kind in LEARNT_FROM:  # others are written without a look at the unit
                seat.seq = row.seq
            study = self._known[row.study]
            if row.kind in TERMS:
                study.seq = row.seq
            if study.mind is not None:
                study.mind_seq = row.seq

    def snapshots(self, turn: Turn, units: set[tuple[str, str]], every: int = EVERY) -> None:
        """Keep snapshots of minds that have learnt much since their last. Only of what is on the disk already."""
        for name, unit in units:
            study, seat = self._known.get(name), self._seats.get((name, unit))
            if study is None or seat is None:
                continue
            if study.mind is not None and study.mind.fresh >= every * 4:
                self._keep(turn, study.mind, "", study.mind_seq)
            if seat.mind is not None and seat.mind.fresh >= every:
                self._keep(turn, seat.mind, unit, seat.seq)

    def everything(self) -> set[tuple[str, str]]:
        """All units known here."""
        return set(self._seats)

    def _keep(self, turn: Turn, mind: Mind, unit: str, seq: int) -> None:
        made_by = f"{MADE_BY}-{mind.terms.version}"
        turn.keep(study=mind.terms.study, unit=unit, seq=seq, made_by=made_by, state=mind.snapshot())

    def _drop(self, name: str, seat: Seat) -> None:
        self._taken -= seat.size
        seat.mind, seat.size = None, 0
        self._held.pop((name, seat.unit), None)

    def _make_room(self, turn: Turn) -> None:
        """Let go of the minds that were not needed for longest."""
        busy = {(row.study, row.unit) for row in turn.rows}
        for (name, unit), seat in list(self._held.items())[:-1] if self._taken > self._room else ():
            if self._taken <= self._room:
                return
            if (name, unit) not in busy:
                if seat.mind is not None and seat.mind.fresh:
                    self._keep(turn, seat.mind, unit, seat.seq)
                self._drop(name, seat)
