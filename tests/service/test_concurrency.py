"""Many clients at once, and two processes on one storage."""

import contextlib
import itertools
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from larl.service.ops.replay import Replay
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.service.figures import amount, keep
from tests.service.host import LARL as POLICY
from tests.service.host import hosts
from tests.service.processes import LARL, Answer, Caller, Server
from tests.waiting import eventually

pytestmark = pytest.mark.timing
KEYS, CLIENTS, ROUNDS = amount(12, 50), amount(6, 20), amount(3, 20)
UNITS = 5


def _answered(caller: Caller, unit: str, key: str) -> Answer:
    """The answer to a decision, asked for as a client asks: again, with the same key, where it is told to try again.

    A connection that was idle for too long has been closed. 503 says that another process held the lock for longer than
    the service waits for one, which happens on a busy machine.
    """

    def ask() -> Answer | None:
        with contextlib.suppress(ConnectionError):
            answer = caller.post("/v1/studies/sleep/decisions", unit=unit, key=key)
            if answer.status != 503:
                return answer
            assert answer.headers["retry-after"] == "1"
        return None

    found = eventually(ask)
    assert found is not None
    return found


def _repeat(ports: Sequence[int], client: int) -> dict[str, set[bytes]]:
    """Ask for every decision again and again; all that was answered, by key."""
    found: dict[str, set[bytes]] = {f"k{key}": set() for key in range(KEYS)}
    with ExitStack() as stack:
        callers = [stack.enter_context(Caller(port, timeout=120.0)) for port in ports]
        for turn, i in itertools.product(range(ROUNDS), range(KEYS)):
            key = (i + client) % KEYS
            caller = callers[(client + turn + i) % len(callers)]
            answer = _answered(caller, f"u{key % UNITS}", f"k{key}")
            found[f"k{key}"].add(b"%d %b" % (answer.status, answer.content))
    return found


def _same_answers(servers: Sequence[Server], name: str) -> None:
    ports = [server.port for server in servers]
    with Caller(ports[0], timeout=120.0) as caller:
        terms = {"policy": POLICY, "min_probability": 0.1, "pooling": "partial", "seed": 7}
        assert caller.post("/v1/studies", study="sleep", arms=["a", "b"], **terms).status == 200
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(lambda client: _repeat(ports, client), range(CLIENTS)))
    answers = {key: set.union(*(each[key] for each in found)) for key in found[0]}
    wrong = [of for of in answers.values() if len(of) != 1 or not next(iter(of)).startswith(b"200 ")]
    assert wrong == []
    database = Database(servers[0].storage)
    rows = list(Journal(database).all())
    assert Replay(Journal(database)).run().decisions == KEYS
    database.close()
    assert sum(row.kind == "decision" for row in rows) == KEYS
    keep(
        f"retries-{name}",
        keys=KEYS,
        clients=CLIENTS,
        rounds=ROUNDS,
        processes=len(ports),
        requests=KEYS * CLIENTS * ROUNDS,
        decisions=KEYS,
        different=0,
    )


def test_a_key_has_one_decision_however_many_ask_for_it(sqlite: str, tmp_path: Path) -> None:
    with Server(sqlite, tmp_path / "log", "--no-auth", "--timeout", "60") as server:
        _same_answers([server], "sqlite")


def test_a_key_has_one_decision_in_two_processes(postgres: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [Server(postgres, tmp_path / f"{i}", "--no-auth", "--timeout", "60") for i in range(2)]
        _same_answers([stack.enter_context(server) for server in servers], "postgresql")


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_a_unit_served_by_two_processes_in_turn_is_one_unit(postgres: str, pooling: str) -> None:
    with hosts(postgres, 2) as both:
        both[0].make(policy=POLICY, min_probability=0.1, pooling=pooling, max_delay=3, default_reward=0.0)
        for i in range(30):
            one, other = both[i % 2], both[(i + 1) % 2]
            said = one.decide(f"u{i % 3}", f"k{i}")
            assert said["t"] == i // 3
            assert (said["source"], said["policy_version"]) == ("policy", 1 + (i > 15))
            assert other.decide(f"u{i % 3}", f"k{i}") == said
            if i % 4:
                other.reward(said["id"], f"k{i}", float(i % 5))
            if i == 15:
                other.change("p", 1, POLICY | {"s": 2}, min_probability=0.2)
        both[0].check()


def test_a_second_process_on_a_file_is_refused(sqlite: str, tmp_path: Path) -> None:
    with Server(sqlite, tmp_path / "log", "--no-auth") as server:
        assert server.process is not None
        again = subprocess.run([*LARL, "serve", "--storage", sqlite, "--port", "0"], capture_output=True, text=True)
        assert again.returncode == 1
        assert f"process {server.process.pid} serves this storage" in again.stderr
        assert "Traceback" not in again.stderr
