"""What must hold after any fault: every acknowledged response is in the journal, and the journal replays."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from larl._core.files import write_atomically
from larl.service.ops.integrity import Mismatch
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database, StorageError
from larl.service.storage.events import Event
from larl.service.storage.journal import Journal
from tests.service.retrying_client import RetryingClient

Place = tuple[str, str, str]  # study, kind and key


@dataclass(kw_only=True)
class Findings:
    """Results of a check. From `lost` on, all counts should be 0."""

    runs: int = 0
    events: int = 0
    acknowledged: int = 0
    replayed: int = 0
    fallbacks: int = 0
    lost: int = 0
    changed: int = 0  # stored responses that differ from the acknowledged ones
    duplicated: int = 0
    unrequested: int = 0  # events in the journal without a request
    gaps: int = 0  # in the numbers of events, or of a unit's steps
    not_replayed: int = 0
    corrupt: int = 0
    refused: int = 0  # valid requests
    examples: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """The number of faults found."""
        stored = self.lost + self.changed + self.duplicated + self.unrequested + self.gaps
        return stored + self.not_replayed + self.corrupt + self.refused

    @property
    def is_correct(self) -> bool:
        """Whether nothing went wrong."""
        return not self.wrong


@contextmanager
def opened(storage: str) -> Iterator[Database]:
    """Open a storage for reading."""
    database = Database(storage)
    try:
        yield database
    finally:
        database.close()


def check_clients(storage: str, clients: Sequence[RetryingClient], findings: Findings) -> None:
    """Compare the responses of clients with the journal."""
    findings.refused += sum(client.refused for client in clients)
    findings.changed += sum(client.changed for client in clients)
    acknowledged = {place: content for client in clients for place, content in client.acknowledged.items()}
    check(storage, acknowledged, {place for client in clients for place in client.sent}, findings)


def check(storage: str, acknowledged: Mapping[Place, bytes], sent: set[Place], findings: Findings) -> None:
    """Compare acknowledged responses with the journal, look for gaps and damage, and replay."""
    try:
        with opened(storage) as database:
            events = list(Journal(database).all())
            if database.is_sqlite:
                with database.reading() as connection:
                    result = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
                findings.corrupt += result != "ok"
            findings.replayed += Replay(Journal(database)).run().events
    except Mismatch as error:
        findings.not_replayed += 1
        findings.examples.append(str(error))
    except StorageError as error:
        findings.corrupt += 1
        findings.examples.append(str(error))
        return
    findings.events += len(events)
    _check_responses(events, acknowledged, sent, findings)
    _check_order(events, findings)


def _check_responses(
    events: Sequence[Event], acknowledged: Mapping[Place, bytes], sent: set[Place], findings: Findings
) -> None:
    """Count acknowledged responses that are lost or changed, and events that are duplicated or not requested."""
    places = [(event.study, event.kind, event.key or "") for event in events if event.kind in ("decision", "reward")]
    stored = {(event.study, event.kind, event.key or ""): event.response_json.encode() for event in events}
    findings.duplicated += sum(count - 1 for count in Counter(places).values())
    findings.unrequested += len(set(places) - sent)
    findings.acknowledged += len(acknowledged)
    for place, content in acknowledged.items():
        findings.lost += place not in stored
        findings.changed += stored.get(place, content) != content


def _check_order(events: Sequence[Event], findings: Findings) -> None:
    """Count gaps in the numbers of events and in the steps of every unit."""
    findings.gaps += sum(event.seq != number for number, event in enumerate(events, 1))
    steps: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.kind == "decision":
            place = (event.study, event.unit or "")
            findings.gaps += event.number != steps[place]
            steps[place] += 1
            findings.fallbacks += event.response["fallback"]


@dataclass
class Table:
    """Results of one part of `make torture`, as a table of docs/reliability.md."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    note: str = ""

    def finish(self, path: Path | None) -> None:
        """Print the table, store it, and exit: code 1 if there are failures."""
        for row in (self.columns, *self.rows):
            print(" | ".join(str(value) for value in row))
        for failure in self.failures[:20]:
            print(f"failure: {failure}", file=sys.stderr)
        if path:
            write_atomically(path, lambda out: out.write_text(json.dumps(vars(self), indent=1)))
        sys.exit(1 if self.failures else 0)


def progress(text: str) -> None:
    """Print a line at once."""
    print(text, file=sys.stderr, flush=True)
