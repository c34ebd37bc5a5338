"""What is done for each kind of command: the rows that it appends, of which one has the answer."""

import math
from typing import Any, NamedTuple

from larl.live.agent import Decision
from larl.service import answers
from larl.service.database import STORAGE_FAILED, journal
from larl.service.journal import Row, Turn, text
from larl.service.problems import invalid, missing
from larl.service.seats import Seat, Study
from larl.service.studies import Resting, Studies
from larl.service.terms import Terms
from larl.service.troubles import Troubles
from larl.service.watch import Watch

DONE = {  # where the policy of a command failed
    "decision": "a decision was made by the fixed probabilities",
    "reward": "the reward was stored, and is learnt from once the policy works",
    "ingest": "the step was stored, and is learnt from once the policy works",
}


class Command(NamedTuple):
    """Something to be done: of which kind, for which study, by which key, and with which words."""

    kind: str
    study: str
    key: str
    words: dict[str, Any]
    unit: str = ""

    @property
    def row(self) -> str:
        """The kind of row that has its answer: decisions that a host made are decisions."""
        return "decision" if self.kind == "ingest" else self.kind


class Clerk:
    """Knows how every kind of command is done."""

    def __init__(self, studies: Studies, watch: Watch, troubles: Troubles) -> None:
        self._studies, self._watch, self._troubles = studies, watch, troubles
        self._does = {
            "study": self.make,
            "policy": self.change,
            "closed": self.close,
            "unit": self.register,
            "decision": self.decide,
            "ingest": self.ingest,
            "reward": self.reward,
            "delivered": self.delivered,
            "resolved": self.resolve,
        }

    def do(self, turn: Turn, command: Command, at: str, stuck: Exception | None = None) -> Row:
        """Do a command; returns the row with its answer. Raises Problem or InvalidValue, before anything is changed.

        `stuck`: how its policy has failed already; it is done without.
        """
        if stuck is None:
            return self._does[command.kind](turn, command, at)
        study = self._studies.open(command.study)
        self._failed(turn, study, command.unit, stuck, DONE[command.kind], at)
        with self._studies.resting():
            return self._does[command.kind](turn, command, at)

    def make(self, turn: Turn, command: Command, at: str) -> Row:
        terms = Terms.of(command.words | {"study": command.study})
        answer = text(answers.made(Study([terms]), at))
        row = turn.append(command.study, "study", at, text(command.words), answer, number=1, key=command.key)
        self._studies.add(row)
        return row

    def change(self, turn: Turn, command: Command, at: str) -> Row:
        study, words = self._studies.open(command.study), command.words
        if words["replaces"] != study.terms.version:
            raise invalid("replaces", words["replaces"], f"{study.terms.version}, the version in force")
        terms = study.terms.changed(words["policy"], words.get("floor"))
        answer = text(answers.changed(terms, at))
        row = turn.append(command.study, "policy", at, text(words), answer, number=terms.version, key=command.key)
        self._studies.add(row)
        return row

    def close(self, turn: Turn, command: Command, at: str) -> Row:
        study = self._studies.open(command.study)
        row = turn.append(
            command.study,
            "closed",
            at,
            text(command.words),
            text(answers.closed(command.study, at)),
            key=command.key,
        )
        study.read(row)
        return row

    def register(self, turn: Turn, command: Command, at: str) -> Row:
        study = self._studies.open(command.study)
        number = 1 + max((row.number or 0 for row in self._entered(turn, command.study)), default=-1)
        answer = answers.entered(command.study, command.unit, number, at)
        row = turn.append(
            command.study,
            "unit",
            at,
            text(command.words),
            text(answer),
            unit=command.unit,
            number=number,
            key=command.key,
        )
        self._studies.enter(command.study, Seat(command.unit, number))
        if study.mind is not None:
            study.mind.learn(row)
        return row

    def _entered(self, turn: Turn, study: str) -> list[Row]:
        """The last unit that entered, in the database and in this turn."""
        last = turn.select(journal.c.study == study, journal.c.kind == "unit", limit=1, newest=True)
        return last + [row for row in turn.rows if row.kind == "unit" and row.study == study]

    def _seat(self, turn: Turn, study: Study, unit: str, at: str) -> Seat:
        """A unit's seat; a new unit is registered, if the study's terms let it be."""
        name = study.terms.study
        seat = self._studies.seat(turn, name, unit)
        if seat is None:
            if study.terms.registration == "explicit":
                raise missing("unit", unit)
            self.register(turn, Command("unit", name, unit, {"unit": unit}, unit), at)
            seat = self._studies.seat(turn, name, unit)
        assert seat is not None
        return seat

    def decide(self, turn: Turn, command: Command, at: str) -> Row:
        study, words = self._studies.open(command.study), command.words
        available, context = words.get("available"), words.get("context")
        study.terms.check(available, context)
        seat = self._seat(turn, study, command.unit, at)
        self._default(turn, study, seat, at)
        if available is not None and not available:
            found = answers.passed(study.terms, seat.number, seat.steps)
            self._play(turn, study, seat, None, context, at)
            return self._decided(turn, command, study, seat, found, "unavailable", at)
        try:
            mind = self._studies.mind(turn, study, seat)
            found = self._watch.policy(lambda: _validated(mind.decide(seat.unit, available, context)))
            self._studies.worked(study, seat.unit)
        except Resting:
            return self._fall_back(turn, command, study, seat, at)
        except STORAGE_FAILED:
            raise
        except Exception as error:
            self._failed(turn, study, seat.unit, error, DONE["decision"], at)
            return self._fall_back(turn, command, study, seat, at)
        return self._decided(turn, command, study, seat, found, "policy", at)

    def _fall_back(self, turn: Turn, command: Command, study: Study, seat: Seat, at: str) -> Row:
        """A decision by the fixed probabilities."""
        found = answers.fallen_back(study.terms, seat.number, seat.steps, command.words.get("available"))
        return self._decided(turn, command, study, seat, found, "fallback", at)

    def _decided(
        self, turn: Turn, command: Command, study: Study, seat: Seat, found: Decision, source: str, at: str
    ) -> Row:
        answer = answers.decided(study.terms, command.unit, found, source, at)
        row = turn.append(
            command.study,
            "decision",
            at,
            text(command.words),
            text(answer),
            unit=command.unit,
            ref=found.id,
            number=seat.steps,
            key=command.key,
        )
        seat.decided(seat.steps, found.id, found.arm)
        return row

    def ingest(self, turn: Turn, command: Command, at: str) -> Row:
        study, words = self._studies.open(command.study), command.words
        self._check_known(study, words["arm"])
        study.terms.check(None, words.get("context"))
        odds = words.get("probabilities") or {}
        if odds and (set(odds) != set(study.terms.arms) or abs(sum(odds.values()) - 1.0) > 1e-6):
            raise invalid("probabilities", odds, "one for every arm, with sum 1; or null, if they are not known")
        seat = self._seat(turn, study, command.unit, at)
        self._default(turn, study, seat, at)
        found = answers.hosted(study.terms, seat.number, seat.steps, words)
        self._play(turn, study, seat, words["arm"], words.get("context"), at)
        return self._decided(turn, command, study, seat, found, "host", at)

    def _play(
        self, turn: Turn, study: Study, seat: Seat, arm: str | None, context: list[float] | None, at: str
    ) -> None:
        """Let the mind know of a step that it did not decide."""
        try:
            mind = self._studies.mind(turn, study, seat)
            self._watch.policy(lambda: mind.played(seat.unit, arm, context))
        except STORAGE_FAILED:
            raise
        except Exception as error:
            self._failed(turn, study, seat.unit, error, DONE["ingest"], at)

    def _default(self, turn: Turn, study: Study, seat: Seat, at: str) -> None:
        """Before a reward can be learnt no more, what counts where none came."""
        terms = study.terms
        for t, name in seat.due(terms.patience):
            words = answers.instead(terms, name)
            answer = text(answers.defaulted(words, self._learn(turn, study, seat, words, at), at))
            row = turn.append(terms.study, "default", at, text(words), answer, unit=seat.unit, ref=name, number=t)
            seat.read(row)

    def reward(self, turn: Turn, command: Command, at: str) -> Row:
        study, seat, t = self._about(turn, command)
        words = command.words
        if words["arm"] is not None:
            self._check_known(study, words["arm"])
        if t not in seat.pending and words["arm"] is None and words["value"] is not None:
            self._check_arm(turn, study, words["decision"])
        answer = answers.rewarded(words, self._learn(turn, study, seat, words, at), at)
        row = turn.append(
            command.study,
            "reward",
            at,
            text(words),
            text(answer),
            unit=seat.unit,
            ref=words["decision"],
            number=t,
            key=command.key,
        )
        seat.read(row)
        return row

    def _check_known(self, study: Study, arm: str) -> None:
        """Refuse an arm that the study does not have."""
        if arm not in study.terms.arms:
            raise invalid("arm", arm, f"one of {', '.join(study.terms.arms)}")

    def _check_arm(self, turn: Turn, study: Study, decision: str) -> None:
        """A reward is of an arm. It is refused here, and not by the mind, which may not be there to refuse it."""
        for row in turn.select(journal.c.ref == decision, journal.c.kind == "decision"):
            if row.said["arm"] is None:
                raise invalid("arm", None, f"one of {', '.join(study.terms.arms)}: none was available at this decision")

    def _learn(self, turn: Turn, study: Study, seat: Seat, words: dict[str, Any], at: str) -> str:
        """Let the mind learn what came of a decision; how it was taken."""
        try:
            mind = self._studies.mind(turn, study, seat)
            return self._watch.policy(lambda: mind.observe(words["decision"], words["value"], words["arm"]))
        except STORAGE_FAILED:
            raise
        except Exception as error:
            self._failed(turn, study, seat.unit, error, DONE["reward"], at)
            return "stored"

    def delivered(self, turn: Turn, command: Command, at: str) -> Row:
        _, seat, t = self._about(turn, command)
        words = command.words
        answer = answers.delivered(words, at)
        return turn.append(
            command.study,
            "delivered",
            at,
            text(words),
            text(answer),
            unit=seat.unit,
            ref=words["decision"],
            number=t,
            key=command.key,
        )

    def _about(self, turn: Turn, command: Command) -> tuple[Study, Seat, int]:
        """Study, unit and step of the decision that a command is about."""
        study = self._studies.open(command.study)
        name = command.words["decision"]
        seat = self._studies.seat(turn, command.study, command.unit) if command.unit else None
        t = int(name.rsplit("-", 2)[1])
        if seat is not None and name == seat.pending.get(t):  # as most are
            return study, seat, t
        if seat is None or t >= seat.steps or study.terms.decision_id(seat.number, t) != name:
            raise missing("decision", name)
        return study, seat, t

    def resolve(self, turn: Turn, command: Command, at: str) -> Row:
        number = command.words["issue"]
        where = (journal.c.seq == number, journal.c.study == command.study, journal.c.kind == "issue")
        found = turn.select(*where)
        if not found:
            raise missing("issue", str(number))
        answer = answers.resolved(command.words, at)
        return turn.append(
            command.study,
            "resolved",
            at,
            text(command.words),
            text(answer),
            number=number,
            key=command.key,
            unit=found[0].unit,
            ref=found[0].said["code"],
        )

    def _failed(self, turn: Turn, study: Study, unit: str, error: Exception, done: str, at: str) -> None:
        """A policy failed: its mind is not trusted any more, and people are told."""
        if isinstance(error, Resting):
            return
        self._studies.failed(study, unit)
        happened = f"the policy failed: {type(error).__name__}: {error}"[:500]
        self._troubles.note(turn, study.terms.study, "red", "policy", unit, happened, done, at)


def _validated(found: Decision) -> Decision:
    """A decision whose numbers can be recorded; raises ArithmeticError for what a policy must not return."""
    chances = found.probabilities.values()
    if not math.isfinite((found.expected or 0.0) + (found.width or 0.0)):
        raise ArithmeticError(f"the policy's prediction is not finite: {found.expected} with width {found.width}")
    in_range = all(0.0 <= chance <= 1.0 + 1e-9 for chance in chances)
    if not in_range or not math.isclose(sum(chances), 1.0, abs_tol=1e-6):
        raise ArithmeticError(f"the policy's probabilities must be in [0, 1] and sum to 1: {found.probabilities}")
    if found.arm is not None and found.probabilities[found.arm] <= 0.0:
        raise ArithmeticError(f"the policy chose arm {found.arm}, to which it gives probability 0")
    return found
