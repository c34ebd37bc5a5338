"""Batches of commands: one transaction for several commands, answered when their events are on disk."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from larl._core.validation import InvalidValue
from larl.service.clock import now, seconds_between
from larl.service.core.agent_cache import AgentCache
from larl.service.core.agent_repository import AgentRepository
from larl.service.core.agents import compile_policy
from larl.service.core.commands import Command
from larl.service.core.conflicts import is_repetition, key_conflict
from larl.service.core.handlers import CommandHandlers
from larl.service.core.issues import IssueLog
from larl.service.core.policy_timeout import PolicyRunner, PolicyThreads, PolicyTimeout
from larl.service.core.problems import Problem, damaged_row, from_invalid_value
from larl.service.core.snapshots import SnapshotWriter
from larl.service.core.state import fold_studies
from larl.service.core.study_repository import StudyRepository
from larl.service.schemas.requests import Request
from larl.service.storage.database import STORAGE_ERRORS
from larl.service.storage.events import STUDY_EVENTS, DamagedRow, EventKind
from larl.service.storage.journal import Journal, Lock, Transaction
from larl.service.storage.tables import journal

LOG = logging.getLogger("larl.service")
MEMORY = 1536 * 2**20  # bytes for agents: 100 units of Auto take 1.2 GB
TIMEOUT = 2.0  # seconds that a policy may take
CLOCK_TOLERANCE = 1.0  # seconds by which the clock may go back without an issue

Reply = bytes | Problem


class Resources:
    """What the batches of all studies share."""

    def __init__(
        self, journal: Journal, *, timeout: float = TIMEOUT, memory: int = MEMORY, alert: Callable[[Any], None] = print
    ) -> None:
        self.journal, self.timeout, self.alert = journal, timeout, alert
        self.cache, self.snapshots, self.threads = AgentCache(memory), SnapshotWriter(journal), PolicyThreads()

    def close(self) -> None:
        """Write the snapshots that are waiting, and stop."""
        self.snapshots.close()
        self.threads.close()


class CommandBatch:
    """Executes batches of commands. A repeated command, with the same key and payload, gets the same response.

    One thread at a time may use it. The service has one for each study, so that studies do not wait for each other.
    """

    def __init__(self, resources: Resources) -> None:
        self.journal, self._alert = resources.journal, resources.alert
        self.runner, self.issues = PolicyRunner(resources.timeout, resources.threads), IssueLog()
        self.studies = StudyRepository(AgentRepository(self.runner, resources.cache, resources.snapshots))
        self._handlers = CommandHandlers(self.studies, self.issues)
        self._generation = self.journal.end.known.generation
        self._latest: str | None = None  # time of the last event

    def save_due(self) -> None:
        """Save the snapshots that are due. To be called when the replies were sent."""
        self.studies.agents.save_due()

    def close(self) -> None:
        """Save snapshots of all agents."""
        self.studies.save_agents()

    def execute(self, commands: Sequence[Command[Request]]) -> list[Reply]:
        """Execute commands in one transaction; return their replies when the events are on disk.

        If the transaction fails, whatever knows of its events is forgotten, and the error is raised.
        """
        self._forget_lost()
        self._compile_new(commands)
        tx, losses = None, self.journal.end.take_losses()
        try:
            with self.journal.transaction(self._locks(commands)) as tx:
                tx.preload([(command.study, command.kind, command.key) for command in commands])
                self.studies.refresh(tx, {command.study for command in commands})
                if losses:
                    self.issues.record_losses(tx, losses, now())
                replies = self._execute_all(tx, commands)
        except BaseException:
            self.journal.end.return_losses(losses)
            if tx is not None:
                self.studies.rollback(tx.events)
                self.issues.rollback(tx.events)
            raise
        self.studies.committed(tx.events)
        self._latest = tx.events[-1].at if tx.events else self._latest
        for issue in self.issues.unreported:
            self._alert(issue)
        self.issues.unreported.clear()
        return replies

    def _forget_lost(self) -> None:
        """Forget everything if the journal has lost events: what is in memory may rest on them."""
        generation = self.journal.end.known.generation
        if generation != self._generation:
            self.studies.clear()
            self._generation = generation

    def _compile_new(self, commands: Sequence[Command[Request]]) -> None:
        """Compile policies of studies that another process created: it takes longer than locks may be held."""
        names = {command.study for command in commands if self.studies.find(command.study) is None}
        if names and not self.journal.database.single_writer:
            where = (journal.c.study.in_(names), journal.c.kind.in_(STUDY_EVENTS))
            for study in fold_studies(self.journal.select(*where)).values():
                for config in study.versions:
                    compile_policy(config)

    def _locks(self, commands: Sequence[Command[Request]]) -> list[Lock]:
        """Return the locks of a batch: exclusive on a study if a command changes what its units share."""
        if self.journal.database.single_writer:
            return []
        locks = []
        for command in commands:
            unit = command.unit or self._unit_of(command)
            study = self.studies.find(command.study)
            is_exclusive = command.kind in (*STUDY_EVENTS, EventKind.UNIT, EventKind.HISTORY)
            is_shared = not is_exclusive and study is not None and not study.config.is_pooled
            locks.append(Lock(command.study, shared=is_shared and self.studies.has_unit(command.study, unit)))
            locks += [Lock(command.study, unit)] if unit else []
        return locks

    def _unit_of(self, command: Command[Request]) -> str:
        return self.studies.unit_of(self.journal, command.decision) if command.decision else ""

    def _execute_all(self, tx: Transaction, commands: Sequence[Command[Request]]) -> list[Reply]:
        """Execute commands in order. A command whose policy exceeds the time limit is repeated without the policy."""
        replies: list[Reply] = []

        def execute_remaining() -> None:
            while len(replies) < len(commands):
                replies.append(self._execute(tx, commands[len(replies)]))

        while len(replies) < len(commands):
            try:
                self.runner.run(execute_remaining)
            except PolicyTimeout as error:
                self._rollback(tx)
                with self.runner.without_policy(error):
                    replies.append(self._execute(tx, commands[len(replies)]))
        return replies

    def _execute(self, tx: Transaction, command: Command[Request]) -> Reply:
        """Return the response to a command, or its refusal: then none of its events remains."""
        tx.begin_command()
        try:
            stored = tx.existing(command.study, command.kind, command.key)
            if stored is not None:
                if is_repetition(command, stored):
                    stored.check_response()
                    return stored.response_json.encode()
                raise key_conflict(command, stored)
            if command.decision:
                unit = self.studies.unit_of(tx, command.decision)
                command = Command(command.study, command.key, command.body, unit, command.decision)
            return self._handlers.execute(tx, command, self._time(tx, command.study)).response_json.encode()
        except Problem as problem:
            reply = problem
        except InvalidValue as error:
            reply = from_invalid_value(error)
        except DamagedRow as error:
            LOG.error("a command of kind %s failed: %s", command.kind, error)
            reply = damaged_row(error)
            self.studies.forget(command.study, command.unit)
        except STORAGE_ERRORS:
            raise
        except Exception:
            LOG.exception("a command of kind %s failed", command.kind)
            reply = Problem(500, "internal error; nothing was changed; see the service's log")
            self.studies.forget(command.study, command.unit)
        self._rollback(tx)
        return reply

    def _rollback(self, tx: Transaction) -> None:
        """Remove the events of the last command, and whatever knows of them."""
        removed = tx.rollback_command()
        self.studies.rollback(removed)
        self.issues.rollback(removed)

    def _time(self, tx: Transaction, study: str) -> str:
        """Return the current time; record an issue if the clock went back since the last event."""
        time = now()
        if self._latest is None:
            self._latest = "".join(event.at for event in tx.select(limit=1, newest=True))
        back = seconds_between(time, self._latest) if time < self._latest else 0.0
        if back > CLOCK_TOLERANCE and self.studies.find(study):
            happened = f"the clock of the service went back by {back:.0f} s"
            done = "decisions went on; their order is that of the journal's numbers, not of the times"
            self.issues.record(tx, study, "yellow", "clock", "", happened, done, time)
        return time
