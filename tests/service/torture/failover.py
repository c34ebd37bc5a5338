"""Failover of PostgreSQL to a standby that lags: acknowledged rows are lost, and the service must say so.

    python -m tests.service.torture.failover [--json FILE]

A primary with streaming replication, two services and a proxy between them. Replication is interrupted, the primary is
stopped, the standby is promoted, and the proxy leads to it. The same with a synchronous standby, which loses nothing.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from tests.service.lossy_proxy import LossyProxy
from tests.service.processes import Connection, Server, reserve_port
from tests.service.retrying_client import STUDIES, RetryingClient
from tests.service.torture.checks import Findings, Table, check_clients, progress
from tests.service.torture.load import create_studies, loading, wait_for
from tests.waiting import eventually

CLIENTS, RESPONSES = 4, 150


@dataclass(kw_only=True)
class Summary(Findings):
    """Results of one failover."""

    standby: str
    issues: int = 0  # red ones about lost rows
    named: str = ""  # the text of one


class Cluster:
    """A PostgreSQL server of our own, without syncs."""

    def __init__(self, folder: Path) -> None:
        with reserve_port() as reserved:
            self.port = int(reserved.getsockname()[1])
        self.folder, self.address = folder, f"127.0.0.1:{self.port}"
        self.url = f"postgresql+psycopg://larl@{self.address}/postgres"

    def create(self) -> None:
        options = ("--username=larl", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        run_program("initdb", f"--pgdata={self.folder}", *options)

    def copy(self, primary: "Cluster") -> None:
        """Become a standby of another server."""
        source = f"host=127.0.0.1 port={primary.port} user=larl application_name=standby"
        run_program(
            "pg_basebackup", f"--pgdata={self.folder}", "--write-recovery-conf", "--no-sync", f"--dbname={source}"
        )

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._control("start", f"--log={self.folder}.log", f"--options={options}")

    def stop(self) -> None:
        """End at once, as after a crash."""
        if (self.folder / "postmaster.pid").exists():
            self._control("stop", "--mode=immediate")

    def promote(self) -> None:
        self._control("promote")

    def _control(self, *arguments: str) -> None:
        run_program("pg_ctl", f"--pgdata={self.folder}", "--wait", *arguments)

    def query(self, text: str) -> Any:
        engine = sql.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
        with engine.connect() as connection:
            result = connection.exec_driver_sql(text)
            return result.scalar() if result.returns_rows else None


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, if there is one."""
    found = shutil.which("pg_basebackup")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    return folders[-1] if folders else Path(found).parent if found else None


def run_program(name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL; it refuses to run as root, so the user of its package runs it."""
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    folder = programs()
    assert folder, "PostgreSQL is not installed"
    done = subprocess.run([*as_user, folder / name, *arguments], cwd="/", stdout=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, f"{name} failed: {done.returncode}"


@contextmanager
def replicated(synchronous: bool) -> Iterator[tuple[Cluster, Cluster]]:
    """Start a primary and its standby."""
    folder = Path(tempfile.mkdtemp())  # where another user can reach it
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    primary, standby = Cluster(folder / "primary"), Cluster(folder / "standby")
    try:
        primary.create()
        primary.start()
        standby.copy(primary)
        standby.start()
        eventually(lambda: primary.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"), 1)
        if synchronous:
            primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            primary.query("SELECT pg_reload_conf()")
        yield primary, standby
    finally:
        primary.stop()
        standby.stop()
        shutil.rmtree(folder)


def run(folder: Path, synchronous: bool, responses: int = RESPONSES) -> Summary:
    """Fail over under load."""
    summary = Summary(standby="synchronous" if synchronous else "asynchronous, behind")
    with replicated(synchronous) as (primary, standby), ExitStack() as stack:
        proxy = LossyProxy(primary.address)
        stack.callback(proxy.close)
        storage = f"postgresql+psycopg://larl@{proxy.address.removeprefix('http://')}/postgres"
        servers = [stack.enter_context(Server(storage, folder / f"{i}.log", "--no-auth")) for i in range(2)]
        create_studies(servers[0].port)
        clients = [RetryingClient(f"c{i}", [server.port for server in servers], seed=i) for i in range(CLIENTS)]
        with loading(clients):
            wait_for(clients, responses)
            if not synchronous:
                standby.query("ALTER SYSTEM SET primary_conninfo = ''")
                standby.query("SELECT pg_reload_conf()")
                eventually(lambda: primary.query("SELECT count(*) FROM pg_stat_replication"), 0)
                wait_for(clients, responses // 2)
            primary.stop()
            standby.promote()
            proxy.redirect(standby.address)
            wait_for(clients, responses)
        check_clients(standby.url, clients, summary)
        for study in STUDIES:
            with Connection(servers[0].port) as connection:
                issues = connection.get(f"/v1/studies/{study}/issues").json()["items"]
            red = [issue for issue in issues if issue["severity"] == "red"]
            summary.issues += len(red)
            summary.named = str(red[0]) if red else summary.named
    progress(f"{summary.standby}: {summary}"[:400])
    return summary


def failures(found: Summary, synchronous: bool) -> Iterator[str]:
    """Yield what should not have happened."""
    wrong = found.changed + found.duplicated + found.unrequested + found.gaps + found.not_replayed + found.corrupt
    if wrong:
        yield f"{found.standby} standby: {wrong} wrong: {found.examples[:3]}"
    if synchronous and (found.lost or found.refused or found.issues):
        yield f"synchronous standby: {found.lost} lost, {found.refused} refused, {found.issues} issues"
    if not synchronous and not found.lost:
        yield "the standby that lags lost nothing: this tested nothing"
    if not synchronous and not found.issues:
        yield f"{found.lost} acknowledged responses were lost without an issue"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    columns = ("standby", "acknowledged", "lost with the primary", "red issues", "changed", "gaps", "not replayed")
    table = Table("Failover (PostgreSQL)", columns)
    for synchronous in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            found = run(Path(folder), synchronous)
        counts = (found.acknowledged, found.lost, found.issues, found.changed, found.gaps, found.not_replayed)
        table.rows.append((found.standby, *counts))
        table.failures += failures(found, synchronous)
    table.finish(options.json)


if __name__ == "__main__":
    main()
