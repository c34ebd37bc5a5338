"""Many clients at the same time, and two processes on one storage."""

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
from tests.service.host import LARL as POLICY
from tests.service.host import hosts
from tests.service.measurements import save, scaled
from tests.service.processes import LARL, Connection, Response, Server
from tests.waiting import eventually

pytestmark = pytest.mark.timing
KEYS, CLIENTS, ROUNDS = scaled(12, 50), scaled(6, 20), scaled(3, 20)
UNITS = 5


def _decide(connection: Connection, unit: str, key: str) -> Response:
    """Request a decision as a client does: repeat it with the same key after an error that allows it.

    The service closes idle connections. 503 means that another process held the lock for too long, which happens on a
    busy machine.
    """

    def send() -> Response | None:
        with contextlib.suppress(ConnectionError):
            response = connection.post("/v1/studies/sleep/decisions", unit=unit, key=key)
            if response.status != 503:
                return response
            assert response.headers["retry-after"] == "1"
        return None

    found = eventually(send)
    assert found is not None
    return found


def _repeat(ports: Sequence[int], client: int) -> dict[str, set[bytes]]:
    """Request every decision repeatedly; return all responses by key."""
    found: dict[str, set[bytes]] = {f"k{key}": set() for key in range(KEYS)}
    with ExitStack() as stack:
        connections = [stack.enter_context(Connection(port, timeout=120.0)) for port in ports]
        for repetition, i in itertools.product(range(ROUNDS), range(KEYS)):
            key = (i + client) % KEYS
            connection = connections[(client + repetition + i) % len(connections)]
            response = _decide(connection, f"u{key % UNITS}", f"k{key}")
            found[f"k{key}"].add(b"%d %b" % (response.status, response.content))
    return found


def _check_responses(servers: Sequence[Server], name: str) -> None:
    ports = [server.port for server in servers]
    with Connection(ports[0], timeout=120.0) as connection:
        settings = {"policy": POLICY, "min_probability": 0.1, "pooling": "partial", "seed": 7}
        assert connection.post("/v1/studies", study="sleep", arms=["a", "b"], **settings).status == 200
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(lambda client: _repeat(ports, client), range(CLIENTS)))
    responses = {key: set.union(*(each[key] for each in found)) for key in found[0]}
    wrong = [of for of in responses.values() if len(of) != 1 or not next(iter(of)).startswith(b"200 ")]
    assert wrong == []
    database = Database(servers[0].storage)
    events = list(Journal(database).all())
    assert Replay(Journal(database)).run().decisions == KEYS
    database.close()
    assert sum(event.kind == "decision" for event in events) == KEYS
    save(
        f"retries-{name}",
        keys=KEYS,
        clients=CLIENTS,
        rounds=ROUNDS,
        processes=len(ports),
        requests=KEYS * CLIENTS * ROUNDS,
        decisions=KEYS,
        different=0,
    )


def test_clients_with_the_same_key_get_the_same_decision(sqlite: str, tmp_path: Path) -> None:
    with Server(sqlite, tmp_path / "log", "--no-auth", "--timeout", "60") as server:
        _check_responses([server], "sqlite")


def test_clients_of_two_processes_with_the_same_key_get_the_same_decision(postgres: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [Server(postgres, tmp_path / f"{i}", "--no-auth", "--timeout", "60") for i in range(2)]
        _check_responses([stack.enter_context(server) for server in servers], "postgresql")


@pytest.mark.parametrize("pooling", ["none", "full", "partial"])
def test_unit_can_alternate_between_two_processes(postgres: str, pooling: str) -> None:
    with hosts(postgres, 2) as both:
        both[0].create_study(policy=POLICY, min_probability=0.1, pooling=pooling, max_delay=3, default_reward=0.0)
        for i in range(30):
            one, other = both[i % 2], both[(i + 1) % 2]
            decision = one.decide(f"u{i % 3}", f"k{i}")
            assert decision["t"] == i // 3
            assert (decision["source"], decision["policy_version"]) == ("policy", 1 + (i > 15))
            assert other.decide(f"u{i % 3}", f"k{i}") == decision
            if i % 4:
                other.reward(decision["id"], f"k{i}", float(i % 5))
            if i == 15:
                other.change_policy("p", 1, POLICY | {"s": 2}, min_probability=0.2)
        both[0].replay()


def test_second_process_on_an_sqlite_file_is_refused(sqlite: str, tmp_path: Path) -> None:
    with Server(sqlite, tmp_path / "log", "--no-auth") as server:
        assert server.process is not None
        second = subprocess.run([*LARL, "serve", "--storage", sqlite, "--port", "0"], capture_output=True, text=True)
        assert second.returncode == 1
        assert f"process {server.process.pid} serves this storage" in second.stderr
        assert "Traceback" not in second.stderr
