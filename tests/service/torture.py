"""Kill the service at random moments under load, again and again, and see whether it kept its word.

    python -m tests.service.torture [--kills 300] [--storage sqlite|postgresql] [--seed 0] [--minutes 60]

Several clients decide and reward over HTTP; what is not answered they ask again under the same key. Meanwhile the
process is killed (SIGKILL) and started again. What was acknowledged must be in the journal byte for byte, once.
"""

import argparse
import http.client
import json
import platform
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import larl
from larl._core.files import write_atomically
from larl.service.ops.integrity import Mismatch
from larl.service.ops.replay import Replay
from larl.service.storage.database import Database
from larl.service.storage.events import Event
from larl.service.storage.journal import Journal
from tests.service.processes import Caller, Server, fresh_postgres

CLIENTS = 4
UNITS = 3  # of each client in each study
STUDIES: dict[str, dict[str, Any]] = {
    "alone": {"policy": {"policy": "LARL", "s": 1}, "min_probability": 0.1, "max_delay": 5, "default_reward": 0.0},
    "pooled": {"policy": {"policy": "LARL", "s": 1}, "min_probability": 0.1, "max_delay": 5, "pooling": "partial"},
}
AFTER = 1.0  # seconds of serving until a kill, at most
STARTING = 10  # every so many kills, one before the service has answered
LAST = 60.0  # seconds that clients have in the end to get what they asked for


@dataclass
class Summary:
    """What a run came to. All but the first line should be zero."""

    storage: str
    processes: int
    seed: int
    kills: int = 0
    rows: int = 0
    acknowledged: int = 0
    asked_again: int = 0  # that were answered after a failure, by a retry under the same key
    replayed: int = 0
    fallbacks: int = 0
    seconds: float = 0.0
    start_s: float = 0.0  # of a process until it answers, the median
    lost: int = 0
    changed: int = 0  # not as acknowledged
    duplicated: int = 0
    unasked: int = 0  # that are in the journal though nobody sent them
    gaps: int = 0  # in the numbers of rows, or of a unit's steps
    not_replayed: int = 0
    corrupt: int = 0
    refused: int = 0  # that should not have been
    examples: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether the service kept its word."""
        wrong = (self.lost, self.changed, self.duplicated, self.unasked, self.gaps, self.not_replayed, self.corrupt)
        return not any(wrong) and not self.refused

    def line(self) -> str:
        """For people."""
        return (
            f"{self.storage}, {self.processes} process(es): {self.kills} kills, {self.acknowledged} acknowledged "
            f"({self.asked_again} by a retry), {self.lost} lost, {self.changed} changed, {self.duplicated} twice, "
            f"{self.unasked} unasked, {self.gaps} gaps, {self.replayed} rows replayed, {self.not_replayed} not, "
            f"{self.corrupt} corrupt, {self.refused} refused, {self.fallbacks} fallbacks"
        )


class Client(threading.Thread):
    """Decides for its units and rewards, until told to stop; what fails is asked again until it is answered."""

    def __init__(self, name: str, ports: Sequence[int], seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self._random = random.Random(f"{seed} {name}")
        self._callers = [Caller(port, timeout=15.0) for port in ports]
        self.asked: set[tuple[str, str, str]] = set()
        self.acknowledged: dict[tuple[str, str, str], bytes] = {}
        self.again, self.refused, self.changed = 0, 0, 0
        self.halt, self.hurry = threading.Event(), threading.Event()

    def run(self) -> None:
        waiting: list[str] = []  # decisions without a reward
        count = 0
        while not self.halt.is_set():
            count += 1
            study = self._random.choice(list(STUDIES))
            unit = f"{self.name}-{self._random.randrange(UNITS)}"
            said = self._ask(study, "decision", f"{unit}-{count}", f"/v1/studies/{study}/decisions", unit=unit)
            if said:
                waiting.append(said["id"])
            self._random.shuffle(waiting)
            while len(waiting) > self._random.randrange(6):
                self._reward(waiting.pop())
            del waiting[20:]
        for caller in self._callers:
            caller.__exit__()

    def _reward(self, decision: str) -> None:
        if self._random.random() < 0.9:  # some never come
            value = round(self._random.gauss(0.0, 1.0), 3)
            study = decision.partition(".")[0]
            self._ask(study, "reward", f"{decision}-r", f"/v1/decisions/{decision}/reward", value=value)

    def _ask(self, study: str, kind: str, key: str, path: str, **body: Any) -> Any:
        """Ask until it is answered; the answer, None if there was none until the end."""
        place, failures = (study, kind, key), 0
        self.asked.add(place)
        while not self.hurry.is_set():
            try:
                answer = self._random.choice(self._callers).post(path, key=key, **body)
            except (OSError, http.client.HTTPException):
                answer = None
            if answer is not None and answer.status == 200:
                return self._note(place, answer.content, failures)
            if answer is not None and answer.status != 503:
                self.refused += 1
                print(f"{path} was refused: {answer.status} {answer.content!r}", file=sys.stderr)
                return None
            failures += 1
            self.hurry.wait(0.02 + 0.1 * self._random.random())
        return None

    def _note(self, place: tuple[str, str, str], content: bytes, failures: int) -> Any:
        self.again += failures > 0
        self.changed += self.acknowledged.setdefault(place, content) != content
        return json.loads(content)


def torture(storage: str, folder: Path, kills: int, seed: int, processes: int = 1, minutes: float = 0.0) -> Summary:
    """Kill the service so many times under load, or as often as there is time for; then check what it wrote."""
    began = time.monotonic()
    summary = Summary(storage.partition(":")[0], processes, seed)
    servers = [Server(storage, folder / f"{i}.log", "--no-auth", "--timeout", "20") for i in range(processes)]
    clients = [Client(f"c{i}", [server.port for server in servers], seed) for i in range(CLIENTS)]
    try:
        starts = _begin(servers)
        for client in clients:
            client.start()
        _kill(servers, kills, random.Random(seed), starts, summary, began + 60.0 * minutes if minutes else None)
    finally:
        _stop(clients)
        for server in servers:
            server.__exit__()
    summary.start_s = sorted(starts)[len(starts) // 2]
    summary.seconds = time.monotonic() - began
    _check(storage, clients, summary)
    return summary


def _begin(servers: Sequence[Server]) -> list[float]:
    for server in servers:
        server.start()
    starts = [server.ready() for server in servers]
    with Caller(servers[0].port, timeout=300.0) as caller:
        for name, terms in STUDIES.items():
            answer = caller.post("/v1/studies", study=name, arms=["nothing", "prompt"], seed=7, **terms)
            assert answer.status == 200, answer.content
    return starts[1:]  # the first may have compiled


def _kill(
    servers: Sequence[Server],
    kills: int,
    dice: random.Random,
    starts: list[float],
    summary: Summary,
    until: float | None,
) -> None:
    """Kill one of the servers after a random time, start it again, and so on."""
    spoken = time.monotonic()
    for i in range(kills):
        server = dice.choice(servers)
        if i % STARTING == STARTING - 1:
            time.sleep(max(server.started + 3.0 * dice.random() - time.monotonic(), 0.0))
        else:
            starts.append(server.ready())
            time.sleep(AFTER * dice.random())
        server.end()
        summary.kills += 1
        server.start()
        if until is not None and time.monotonic() > spoken + 10.0:
            spoken = time.monotonic()
            print(f"{summary.kills} of {kills} kills", file=sys.stderr, flush=True)
        if until is not None and time.monotonic() > until:
            break
    for server in servers:
        starts.append(server.ready())


def _stop(clients: Sequence[Client]) -> None:
    """Let clients end what they have begun."""
    for client in clients:
        client.halt.set()
    until = time.monotonic() + LAST
    for client in clients:
        if client.ident:
            client.join(max(until - time.monotonic(), 0.0))
    for client in clients:
        client.hurry.set()
        if client.ident:
            client.join()


@contextmanager
def _opened(storage: str) -> Iterator[Database]:
    database = Database(storage)
    try:
        yield database
    finally:
        database.close()


def _check(storage: str, clients: Sequence[Client], summary: Summary) -> None:
    """Compare what was acknowledged with what is there."""
    with _opened(storage) as database:
        rows = list(Journal(database).all())
        if database.is_sqlite:
            with database.reading() as connection:
                said = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
            summary.corrupt += said != "ok"
        try:
            summary.replayed = Replay(Journal(database)).run().events
        except Mismatch as error:
            summary.not_replayed = 1
            summary.examples.append(str(error))
    summary.rows = len(rows)
    summary.refused = sum(client.refused for client in clients)
    summary.asked_again = sum(client.again for client in clients)
    summary.changed = sum(client.changed for client in clients)
    _check_words(rows, clients, summary)
    _check_order(rows, summary)


def _check_words(rows: Sequence[Event], clients: Sequence[Client], summary: Summary) -> None:
    """What was acknowledged is there as it was acknowledged, once; nothing is there that nobody asked for."""
    places = [(row.study, row.kind, row.key or "") for row in rows if row.kind in ("decision", "reward")]
    found = {(row.study, row.kind, row.key or ""): row.response_json.encode() for row in rows}
    summary.duplicated = sum(count - 1 for count in Counter(places).values())
    summary.unasked = len(set(places) - {place for client in clients for place in client.asked})
    for client in clients:
        summary.acknowledged += len(client.acknowledged)
        for place, content in client.acknowledged.items():
            summary.lost += place not in found
            summary.changed += found.get(place, content) != content


def _check_order(rows: Sequence[Event], summary: Summary) -> None:
    """Rows are numbered without gaps, and so are the steps of every unit."""
    summary.gaps = sum(row.seq != number for number, row in enumerate(rows, 1))
    steps: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.kind == "decision":
            place = (row.study, row.unit or "")
            summary.gaps += row.number != steps[place]
            steps[place] += 1
            summary.fallbacks += row.response["fallback"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--storage", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120.0, help="stop killing after so long")
    parser.add_argument("--out", type=Path, default=Path("results/torture"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.storage == "sqlite":
            found = torture(f"sqlite:///{folder}/study.db", Path(folder), given.kills, given.seed, 1, given.minutes)
        else:
            with fresh_postgres() as storage:
                found = torture(storage, Path(folder), given.kills, given.seed, 2, given.minutes)
    print(found.line())
    words = asdict(found) | {"kept": found.kept, "larl": larl.__version__, "python": platform.python_version()}
    write_atomically(
        given.out / f"kills-{given.storage}.json", lambda path: path.write_text(json.dumps(words, indent=1))
    )
    sys.exit(0 if found.kept else 1)


if __name__ == "__main__":
    main()
