"""What went wrong in studies: each issue is noted once while it is open, and people are told."""

from typing import Any

from larl.service.database import journal
from larl.service.journal import Row, Turn, text


class Troubles:
    """The issues that nobody was told of yet."""

    def __init__(self) -> None:
        self.fresh: list[dict[str, Any]] = []

    def note(
        self, turn: Turn, study: str, severity: str, code: str, unit: str, happened: str, done: str, at: str
    ) -> None:
        """Note an issue, unless it is open already: what happened, and what was done."""
        if _is_open(turn, study, code, unit or None):
            return
        words = {"severity": severity, "code": code, "unit": unit or None, "happened": happened, "done": done}
        turn.append(study, "issue", at, "{}", text(words | {"at": at}), unit=unit or None, ref=code)
        del words["unit"]  # an alert goes who knows where
        self.fresh.append({"study": study, "at": at, **words})

    def take_back(self, rows: list[Row]) -> None:
        """These rows did not become facts."""
        for row in rows:
            if row.kind == "issue":
                self.fresh.pop()


def _is_open(turn: Turn, study: str, code: str, unit: str | None) -> bool:
    """Whether such an issue is there and nobody has resolved it, here or through another process."""
    kinds = ("issue", "resolved")
    where = (journal.c.study == study, journal.c.kind.in_(kinds), journal.c.ref == code, journal.c.unit == unit)
    found = [row.kind for row in turn.select(*where, limit=1, newest=True)]
    here = [
        row.kind for row in turn.rows if row.kind in kinds and (row.study, row.ref, row.unit) == (study, code, unit)
    ]
    return [*found, *here][-1:] == ["issue"]
