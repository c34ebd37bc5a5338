"""Commands about issues."""

from larl.client.models import ResolvedIssue
from larl.service.core.commands import Command
from larl.service.core.handlers.base import append
from larl.service.core.problems import not_found
from larl.service.schemas.requests import Resolution
from larl.service.storage.events import Event, EventKind
from larl.service.storage.journal import Transaction
from larl.service.storage.tables import journal


def resolve(tx: Transaction, command: Command[Resolution], at: str) -> Event:
    """Mark an issue as resolved."""
    where = (journal.c.seq == command.issue, journal.c.study == command.study, journal.c.kind == EventKind.ISSUE)
    issues = tx.select(*where)
    if not issues:
        raise not_found("issue", str(command.issue))
    payload = ResolvedIssue(issue=command.issue, resolved=at, note=command.body.note)
    return append(tx, command, payload, at, number=command.issue, unit=issues[0].unit, ref=issues[0].ref)
