"""Every decision of a journal made anew from the rows before it, and what does not come out the same."""

from collections.abc import Iterable
from typing import Any

from larl.service.journal import Row, text
from larl.service.minds import Mind
from larl.service.terms import Terms

OF_THE_MIND = ("id", "t", "arm", "probabilities", "expected", "width", "explored")


class Refold:
    """Follows a journal from its first row on."""

    def __init__(self) -> None:
        self.checked = 0
        self.wrong: list[str] = []
        self._terms: dict[str, Terms] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._minds: dict[tuple[str, str], Mind] = {}
        self._rows: dict[str, list[Row]] = {}

    def follow(self, rows: Iterable[Row]) -> "Refold":
        for expected, row in enumerate(rows, 1):
            if row.seq != expected:
                self.wrong.append(f"row {expected} is missing")
                return self
            getattr(self, f"_{row.kind}", self._other)(row)
            self._rows.setdefault(row.study, []).append(row)
        return self

    def _study(self, row: Row) -> None:
        self._terms[row.study] = Terms.read(row.said["terms"])

    def _policy(self, row: Row) -> None:
        """A new policy has learnt from all that was before."""
        self._study(row)
        for place in [place for place in self._minds if place[0] == row.study]:
            del self._minds[place]

    def _unit(self, row: Row) -> None:
        self._numbers[row.study, row.unit or ""] = row.number or 0
        if self._terms[row.study].pooled:
            self._mind(row).learn(row)

    def _mind(self, row: Row) -> Mind:
        terms = self._terms[row.study]
        place = (row.study, "" if terms.pooled else row.unit or "")
        if place not in self._minds:
            before = [old for old in self._rows[row.study] if terms.pooled or old.unit == row.unit]
            self._minds[place] = Mind.follow(terms, self._numbers.get(place, 0), None, before)
        return self._minds[place]

    def _decision(self, row: Row) -> None:
        said, asked, terms = row.said, row.asked, self._terms[row.study]
        mind, number = self._mind(row), self._numbers[row.study, row.unit or ""]
        again: dict[str, Any] = dict(said)
        if said["source"] == "policy":
            found = mind.decide(row.unit or "", asked["available"], asked["context"])._asdict()
            again |= {name: found[name] for name in OF_THE_MIND}
        else:
            mind.learn(row)
            again |= {"id": terms.decision_id(number, row.number or 0), "t": row.number}
        if said["source"] == "fallback":
            arm, odds = terms.fall_back(number, row.number or 0, asked["available"])
            again |= {"arm": arm, "probabilities": odds}
        self._compare(row, again)

    def _reward(self, row: Row) -> None:
        taken = self._mind(row).observe(row.ref or "", row.asked["value"], row.asked.get("arm"))
        if row.said["taken"] != "stored":  # the policy failed then
            self._compare(row, row.said | {"taken": taken})

    _default = _reward

    def _compare(self, row: Row, again: dict[str, Any]) -> None:
        self.checked += 1
        if text(again) != row.answer:
            self.wrong.append(f"row {row.seq}: {row.answer}, but anew {text(again)}")

    def _other(self, row: Row) -> None:
        """Not learnt from."""
