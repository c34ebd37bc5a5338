"""Every decision once more, from the journal alone: what comes out must be what is stored, byte for byte.

Rows are read in their order; snapshots are not looked at. What a row says is written anew from what was asked and from
the rows before it, by the code that serves, and compared as text. Taken as it is stored, because nothing says what it
should be: what was asked (its effect on later rows is seen), times, the version of larl, that a policy failed, and
rows missing at the very end. Policies must be those of this larl, on a machine whose arithmetic is the same.

In memory: a few numbers for every unit, and minds up to `room` bytes; one that was let go is folded anew when its unit
comes back. A pooled study has one mind.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sql

from larl import __version__
from larl._core.validation import InvalidValue
from larl.live.agent import Decision
from larl.service import answers
from larl.service.database import StorageError, journal
from larl.service.desk import ROOM
from larl.service.integrity import Mismatch, about, same
from larl.service.journal import Journal, Row, text
from larl.service.minds import Mind
from larl.service.seats import Seat, Study
from larl.service.studies import LEARNT_FROM
from larl.service.table import studies_of
from larl.service.terms import Terms

COLUMNS = ("unit", "ref", "number", "answer")


class Summary(NamedTuple):
    """What was gone through."""

    rows: int
    decisions: int
    others: dict[str, int]  # decisions by another larl: how many by which


@dataclass
class Past:
    """What is known of a study at a row."""

    study: Study = field(default_factory=Study)
    seats: dict[str, Seat] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)  # units for which a default was written, and no decision yet
    issues: dict[int, Row] = field(default_factory=dict)


class Replay:
    """Goes through a journal, or one study of it."""

    def __init__(self, book: Journal, study: str | None = None, room: int = ROOM) -> None:
        self._book, self._only, self._room = book, study, room
        self._pasts: dict[str, Past] = {}
        self._held: OrderedDict[tuple[str, str], Seat] = OrderedDict()  # those with a mind, the latest used last
        self._taken = 0  # bytes
        self._derive: dict[str, Callable[[Row, Past], dict[str, Any]]] = {
            "study": self._study,
            "policy": self._policy,
            "closed": self._closed,
            "unit": self._unit,
            "decision": self._decision,
            "reward": self._reward,
            "default": self._default,
            "delivered": self._delivered,
            "issue": self._issue,
            "resolved": self._resolved,
        }

    def count(self) -> int:
        """How many rows there are to go through, at least 1."""
        with self._book.database.reading() as connection:
            found = connection.scalar(sql.select(sql.func.count()).select_from(journal).where(*self._where()))
        if self._only and not found:
            raise InvalidValue("replay", "study", self._only, studies_of(self._book))
        return found or 1

    def _where(self) -> list[Any]:
        return [journal.c.study == self._only] if self._only else []

    def run(self, step: Callable[[], object] = lambda: None) -> Summary:
        """Go through all rows; `step` is called after each. Raises Mismatch."""
        rows, by = 0, Counter[str]()
        for row in self._book.all(*self._where()):
            self.check(row)
            rows += 1
            by.update([row.said["larl"]] if row.kind == "decision" else [])
            step()
        return Summary(rows, by.total(), {made: count for made, count in by.items() if made != __version__})

    def check(self, row: Row) -> None:
        """Derive the next row, and compare."""
        past = self._pasts.setdefault(row.study, Past())
        try:
            if past.study.closed and row.kind not in ("issue", "resolved"):
                raise ValueError("the study was closed")
            if row.unit in past.owed and row.kind not in ("default", "issue", "decision"):
                raise ValueError("a decision follows on a default reward")
            derived = self._derive[row.kind](row, past)
        except (Mismatch, StorageError):
            raise
        except Exception as error:
            reason = f"nothing ({type(error).__name__}: {error})"
            raise Mismatch(row.seq, about(row), row.kind, row.answer, reason) from error
        for name in COLUMNS:
            same(row, name, getattr(row, name), derived.get(name))

    def _study(self, row: Row, past: Past) -> dict[str, Any]:
        if past.study.versions:
            raise ValueError("there is such a study already")
        seed = row.said["terms"]["seed"]  # drawn, if none was asked for
        terms = Terms.of(row.asked | {"study": row.study} | ({"seed": seed} if row.asked.get("seed") is None else {}))
        past.study.versions.append(terms)
        return {"number": 1, "answer": text(answers.made(past.study, row.at))}

    def _policy(self, row: Row, past: Past) -> dict[str, Any]:
        if row.asked["replaces"] != past.study.terms.version:
            raise ValueError(f"version {past.study.terms.version} was in force")
        terms = past.study.terms.changed(row.asked["policy"], row.asked.get("floor"))
        past.study.versions.append(terms)
        past.study.mind = None
        return {"number": terms.version, "answer": text(answers.changed(terms, row.at))}

    def _closed(self, row: Row, past: Past) -> dict[str, Any]:
        past.study.read(row)
        return {"answer": text(answers.closed(row.study, row.at))}

    def _unit(self, row: Row, past: Past) -> dict[str, Any]:
        unit, number = row.asked["unit"], len(past.seats)
        if unit in past.seats:
            raise ValueError("there is such a unit already")
        past.seats[unit] = Seat(unit, number)
        if past.study.mind is not None:
            past.study.mind.learn(row)
        answer = text(answers.entered(row.study, unit, number, row.at))
        return {"unit": unit, "number": number, "answer": answer}

    def _decision(self, row: Row, past: Past) -> dict[str, Any]:
        seat, terms, source = past.seats[row.asked["unit"]], past.study.terms, row.said["source"]
        if due := seat.due(terms.patience):
            raise Mismatch(row.seq, about(row), "default reward", "none", f"one for {due[0][1]} before this row")
        found = self._found(row, past.study, seat, source)
        t = seat.steps
        past.owed.discard(seat.unit)
        answer = text(answers.decided(terms, seat.unit, found, source, row.at, row.said["larl"]))
        seat.read(row)
        return {"unit": seat.unit, "ref": terms.decision_id(seat.number, t), "number": t, "answer": answer}

    def _found(self, row: Row, study: Study, seat: Seat, source: str) -> Decision:
        """The decision of a row, which has learnt of it."""
        words, number, t = row.asked, seat.number, seat.steps
        if (source == "host") != ("made" in words) or (source == "unavailable") != (words.get("available") == []):
            raise ValueError(f"its source cannot be {source}")
        if source == "policy":
            return self._mind(study, seat, row).decide(seat.unit, words.get("available"), words.get("context"))
        found = {
            "host": lambda: answers.hosted(study.terms, number, t, words),
            "unavailable": lambda: answers.passed(study.terms, number, t),
            "fallback": lambda: answers.fallen_back(study.terms, number, t, words.get("available")),
        }[source]()
        self._learn(study, seat, row)
        return found

    def _reward(self, row: Row, past: Past) -> dict[str, Any]:
        seat, columns = self._about_decision(row, past)
        taken = self._observed(row, past, seat, row.asked)
        return columns | {"answer": text(answers.rewarded(row.asked, taken, row.at))}

    def _default(self, row: Row, past: Past) -> dict[str, Any]:
        seat, terms = past.seats[row.unit or ""], past.study.terms
        t, name = next(iter(seat.due(terms.patience)), (None, ""))
        if t is None:
            raise ValueError("none was due")
        words = answers.instead(terms, name)
        same(row, "request", row.request, text(words))
        past.owed.add(seat.unit)
        taken = self._observed(row, past, seat, words)
        answer = text(answers.defaulted(words, taken, row.at))
        return {"unit": seat.unit, "ref": name, "number": t, "answer": answer}

    def _observed(self, row: Row, past: Past, seat: Seat, words: dict[str, Any]) -> str:
        """How a reward is taken, which is learnt."""
        if row.said["taken"] == "stored":  # the policy failed then, and learns it once it works
            self._learn(past.study, seat, row)
            taken = "stored"
        else:
            taken = self._mind(past.study, seat, row).observe(words["decision"], words["value"], words["arm"])
        seat.read(row)
        return taken

    def _delivered(self, row: Row, past: Past) -> dict[str, Any]:
        return self._about_decision(row, past)[1] | {"answer": text(answers.delivered(row.asked, row.at))}

    def _about_decision(self, row: Row, past: Past) -> tuple[Seat, dict[str, Any]]:
        """The unit, and the columns, of a row about an earlier decision."""
        name = row.asked["decision"]
        seat, t = past.seats[row.unit or ""], int(name.rsplit("-", 2)[1])
        if t >= seat.steps or name != past.study.terms.decision_id(seat.number, t):
            raise ValueError(f"there is no decision {name} of this unit before this row")
        return seat, {"unit": seat.unit, "ref": name, "number": t}

    def _issue(self, row: Row, past: Past) -> dict[str, Any]:
        past.issues[row.seq] = row
        said = row.said | {"unit": row.unit, "at": row.at}
        return {"unit": row.unit, "ref": said["code"], "number": None, "answer": text(said)}

    def _resolved(self, row: Row, past: Past) -> dict[str, Any]:
        issue = past.issues[row.asked["issue"]]
        answer = text(answers.resolved(row.asked, row.at))
        return {"unit": issue.unit, "ref": issue.ref, "number": issue.seq, "answer": answer}

    def _learn(self, study: Study, seat: Seat, row: Row) -> None:
        """Let the mind follow a row that it did not make; one that cannot is made anew when it is next needed."""
        try:
            self._mind(study, seat, row).learn(row)
        except StorageError:
            raise
        except Exception:
            study.mind = None
            self._drop(row.study, seat)

    def _mind(self, study: Study, seat: Seat, row: Row) -> Mind:
        """What decides for a unit before a row, with the policy then in force."""
        terms = study.terms
        if terms.pooled:
            study.mind = study.mind or Mind.follow(terms, 0, None, self._before(row))
            return study.mind
        if seat.mind is None or seat.version != terms.version:
            self._drop(row.study, seat)
            seat.mind, seat.version = Mind.follow(terms, seat.number, None, self._before(row, seat.unit)), terms.version
            seat.size = seat.mind.size
            self._taken += seat.size
            self._held[row.study, seat.unit] = seat
            while self._taken > self._room and len(self._held) > 1:
                (name, _), oldest = next(iter(self._held.items()))
                self._drop(name, oldest)
        self._held.move_to_end((row.study, seat.unit))
        return seat.mind

    def _drop(self, study: str, seat: Seat) -> None:
        self._taken -= seat.size
        seat.mind, seat.size = None, 0
        self._held.pop((study, seat.unit), None)

    def _before(self, row: Row, unit: str | None = None) -> Iterator[Row]:
        """What a mind learns from, up to a row."""
        here = (journal.c.study == row.study, journal.c.kind.in_(LEARNT_FROM), journal.c.seq < row.seq)
        return self._book.all(*here, *([journal.c.unit == unit] if unit else []))
