"""Where commands arrive: some of them are done in one turn, and answered once what they say is on the disk.

A command that is repeated, with the same key and the same words, gets the answer that it got.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from larl._core.validation import InvalidValue
from larl.service.clerk import Clerk, Command
from larl.service.clock import now, seconds_between
from larl.service.conflicts import clash, repeats
from larl.service.database import STORAGE_FAILED, journal
from larl.service.journal import Journal, Lock, Turn
from larl.service.problems import Problem, of_value
from larl.service.studies import Studies
from larl.service.troubles import Troubles
from larl.service.watch import TookTooLong, Watch

LOG = logging.getLogger("larl.service")
ROOM = 512 * 2**20  # bytes for minds
SECONDS = 2.0  # a policy may take
CLOCK = 1.0  # seconds that a clock may go back unnoticed
ABOUT_ONE = ("reward", "delivered")  # commands about a decision
EXCLUSIVE = ("study", "policy", "closed", "unit")  # commands that change what all of a study share

Reply = bytes | Problem


class Desk:
    """Takes commands, gives answers."""

    def __init__(
        self, book: Journal, *, seconds: float = SECONDS, room: int = ROOM, alert: Callable[[Any], None] = print
    ) -> None:
        self._book, self._alert = book, alert
        self._watch, self._troubles = Watch(seconds), Troubles()
        self._studies = Studies(self._watch, room)
        self._clerk = Clerk(self._studies, self._watch, self._troubles)
        self._latest = "".join(row.at for row in book.select(limit=1, newest=True))

    def close(self) -> None:
        """Keep snapshots of everything."""
        with self._book.turn() as turn:
            self._studies.snapshots(turn, self._studies.everything(), every=1)
        self._watch.close()

    def do(self, commands: Sequence[Command]) -> list[Reply]:
        """Do all of these in one turn; their answers, once what they say is on the disk."""
        turn, latest = None, self._latest
        try:
            commands = self._addressed(commands)
            with self._book.turn(() if self._book.database.alone else self._locks(commands)) as turn:
                turn.look([(command.study, command.row, command.key) for command in commands])
                self._studies.refresh(turn, {command.study for command in commands})
                replies = self._replies(turn, commands)
                turn.write()
                self._studies.settle(turn.rows)
                self._studies.snapshots(turn, {(row.study, row.unit or "") for row in turn.rows})
        except BaseException:
            if turn is not None:
                self._studies.forget_all(turn.rows)
                self._troubles.take_back(turn.rows)
            self._latest = latest
            raise
        for issue in self._troubles.fresh:
            self._alert(issue)
        self._troubles.fresh.clear()
        return replies

    def _addressed(self, commands: Sequence[Command]) -> list[Command]:
        """Commands about a decision know the unit that it is of."""
        return [
            command._replace(unit=self._unit_of(command.words["decision"])) if command.kind in ABOUT_ONE else command
            for command in commands
        ]

    def _unit_of(self, decision: str) -> str:
        unit = self._studies.unit_of(decision)
        if unit is None:
            found = self._book.select(journal.c.ref == decision, journal.c.kind == "decision")
            unit = found[0].unit if found else None
        return unit or ""

    def _locks(self, commands: Sequence[Command]) -> list[Lock]:
        locks = []
        for study, kind, unit in {(command.study, command.kind, command.unit) for command in commands}:
            known = self._studies.known(study)
            alone = kind in EXCLUSIVE or known is None or known.terms.pooled or not self._studies.seated(study, unit)
            locks.append(Lock(study, shared=not alone))
            if unit:
                locks.append(Lock(study, unit))
        return locks

    def _replies(self, turn: Turn, commands: Sequence[Command]) -> list[Reply]:
        """Do commands one after the other. One in which a policy is stuck is done again without it."""
        replies: list[Reply] = []
        while len(replies) < len(commands):
            try:
                self._watch.run(partial(self._go_on, turn, commands, replies))
            except TookTooLong as error:
                self._take_back(turn)
                replies.append(self._one(turn, commands[len(replies)], error))
        return replies

    def _go_on(self, turn: Turn, commands: Sequence[Command], replies: list[Reply]) -> None:
        while len(replies) < len(commands):
            replies.append(self._one(turn, commands[len(replies)]))

    def _one(self, turn: Turn, command: Command, stuck: TookTooLong | None = None) -> Reply:
        """Do one command, without its policy if that is stuck. If it is refused, or fails, none of its rows stays."""
        self._before = len(turn.rows), self._latest
        try:
            found = turn.find(command.study, command.row, command.key)
            if found is None:
                return self._clerk.do(turn, command, self._time(turn, command.study), stuck).answer.encode()
            if repeats(command, found):
                return found.answer.encode()
            reply: Reply = clash(command, found)
        except Problem as problem:
            reply = problem
        except InvalidValue as error:
            reply = of_value(error)
        except STORAGE_FAILED:
            raise
        except Exception:
            LOG.exception("a command of kind %s failed", command.kind)
            reply = Problem(500, "internal error; nothing was changed; see the service's log")
            self._studies.forget(command.study, command.unit)
        self._take_back(turn)
        return reply

    def _take_back(self, turn: Turn) -> None:
        """Nothing of the command that was begun last stays."""
        first, self._latest = self._before
        self._studies.forget_all(turn.rows[first:])
        self._troubles.take_back(turn.rows[first:])
        turn.take_back(first)

    def _time(self, turn: Turn, study: str) -> str:
        """The time now; a clock that went back is noted."""
        time = now()
        if time < self._latest and seconds_between(time, self._latest) > CLOCK and self._studies.known(study):
            back = seconds_between(time, self._latest)
            happened = f"the clock of the service went back by {back:.0f} s"
            done = "decisions went on; their order is that of the journal's numbers, not of the times"
            self._troubles.note(turn, study, "yellow", "clock", "", happened, done, time)
        self._latest = time
        return time
