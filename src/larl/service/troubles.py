"""What went wrong in studies: each issue is noted once while it is open, and people are told."""

from typing import Any

from larl.service.database import journal
from larl.service.journal import Journal, Row, Turn, text


class Troubles:
    """The issues that are open, by study, code and unit, and those that nobody was told of yet."""

    def __init__(self, book: Journal) -> None:
        self._open: set[tuple[str, str, str]] = set()
        self.fresh: list[dict[str, Any]] = []
        for row in book.select(journal.c.kind.in_(("issue", "resolved"))):
            self.follow(row)

    def note(
        self, turn: Turn, study: str, severity: str, code: str, unit: str, happened: str, done: str, at: str
    ) -> None:  # fmt: skip
        """Note an issue, unless it is open already: what happened, and what was done."""
        if (study, code, unit) in self._open:
            return
        words = {"severity": severity, "code": code, "unit": unit or None, "happened": happened, "done": done}
        self.follow(turn.append(study, "issue", at, "{}", text(words | {"at": at}), unit=unit or None, ref=code))
        del words["unit"]  # an alert goes who knows where
        self.fresh.append({"study": study, "at": at, **words})

    def follow(self, row: Row) -> None:
        """Know which issues are open."""
        place = (row.study, row.ref or "", row.unit or "")
        if row.kind == "issue":
            self._open.add(place)
        else:
            self._open.discard(place)

    def take_back(self, rows: list[Row]) -> None:
        """These rows did not become facts."""
        for row in rows:
            if row.kind == "issue":
                self._open.discard((row.study, row.ref or "", row.unit or ""))
                self.fresh.pop()
