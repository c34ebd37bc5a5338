"""Bit flips in a database, its write-ahead log, snapshots, backups and agent files.

    python -m tests.service.torture.bit_flips [--flips 100] [--seed 0] [--json FILE]

A damaged file must be refused, or reported by `larl replay` or an issue, or make no difference: never other decisions
without a word. A process that crashes is a failure too.
"""

import argparse
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import larl
from larl._core.validation import InvalidValue
from larl.live.files import InvalidFile
from larl.service.ops.backup import backup, restore
from larl.service.ops.integrity import Mismatch, check_complete
from larl.service.ops.replay import Replay
from larl.service.storage.database import StorageError
from larl.service.storage.journal import Journal
from tests.service.host import Host, hosts
from tests.service.retrying_client import STUDIES
from tests.service.torture.checks import Table, opened, progress

UNITS, STEPS = ("u", "v", "w"), 12
KINDS = ("database", "write-ahead log", "snapshots", "backup", "agent file")
OUTCOMES = ("refused", "reported", "harmless", "unnoticed", "different", "crashed")
TITLES = {
    "refused": "refused",
    "reported": "reported with its place",
    "harmless": "no difference",
    "unnoticed": "unnoticed, same decisions",
    "different": "**other decisions, unnoticed**",
    "crashed": "**crash or error 500**",
}
SHOWN = 3  # examples of each outcome
LIMIT = 120.0  # seconds until a process counts as hanging
Outcome = tuple[str, str]  # one of OUTCOMES, and details


def prepare(folder: Path) -> None:
    """Make a storage with a write-ahead log, its closed state, a backup and an agent file."""
    served = folder / "served"
    served.mkdir()
    with hosts(_storage(served)) as [host]:
        for study, settings in STUDIES.items():
            host.create_study(study, **settings)
        for step in range(STEPS):
            _traffic(host, step)
    with hosts(_storage(served)) as [host]:
        for step in range(STEPS, 2 * STEPS):
            _traffic(host, step)
        shutil.copytree(served, folder / "write-ahead log", ignore=shutil.ignore_patterns("*-shm"))
    for name in ("database", "snapshots"):
        shutil.copytree(served, folder / name)
    (folder / "backup").mkdir()
    with opened(_storage(served)) as database:
        backup(database, folder / "backup" / "file")
    agent = larl.Agent(larl.LARL(s=1), ["a", "b"], seed=1)
    for _ in range(20):
        agent.observe(agent.decide(), 1.0)
    (folder / "agent file").mkdir()
    agent.save(folder / "agent file" / "file")


def _storage(folder: Path) -> str:
    return f"sqlite:///{folder / 'study.db'}"


def _traffic(host: Host, step: int) -> None:
    for study in STUDIES:
        for unit in UNITS:
            decision = host.decide(unit, f"{unit}{step}", study)
            if step % 3:
                host.reward(decision["id"], f"{unit}{step}", step % 5 - 2.0)


def _rows(folder: Path) -> list[Any]:
    with opened(_storage(folder)) as database:
        return list(Journal(database).all())


def _next_decisions(folder: Path) -> tuple[list[Any], str]:
    """Return the next decisions of all units, and the issues that the service has."""
    with hosts(_storage(folder)) as [host]:
        decisions = [host.decide(unit, f"next-{unit}", study) for study in STUDIES for unit in UNITS]
        issues = [issue["what"] if "what" in issue else str(issue) for study in STUDIES for issue in host.issues(study)]
    return [(each["id"], each["t"], each["arm"], each["probabilities"]) for each in decisions], "; ".join(issues)


def flip(kind: str, source: Path, seed: str, folder: Path) -> Outcome:
    """Flip a bit in a copy of the prepared files of a kind; return what happens."""
    generator = random.Random(seed)
    copied = folder / "copy"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(source / kind, copied)
    if kind == "snapshots":
        _damage_snapshot(copied / "study.db", generator)
    else:
        names = {"database": "study.db", "write-ahead log": "study.db-wal"}
        _flip_bit(copied / names.get(kind, "file"), generator)
    expected = _undamaged(source / ("database" if kind in ("backup", "agent file") else kind), folder)
    try:
        if kind == "agent file":
            return _agent(copied / "file", source / kind / "file")
        if kind == "backup":
            restore(copied / "file", _storage(copied))
        return _compare(copied, *expected, folder)
    except (StorageError, InvalidValue, InvalidFile) as error:
        return "refused", str(error)
    except Exception as error:  # also a response with status 500
        return "crashed", f"{type(error).__name__}: {error}"


def _flip_bit(path: Path, generator: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    path.write_bytes(content)


def _damage_snapshot(path: Path, generator: random.Random) -> None:
    """Flip a bit of a state, or give it another number or the state of another unit."""
    connection = sqlite3.connect(path)
    with connection:
        [(row, state, seq), (_, other, _)] = generator.sample(
            connection.execute("SELECT rowid, state, seq FROM snapshots ORDER BY rowid").fetchall(), 2
        )
        damaged, how = bytearray(state), generator.randrange(4)
        if how < 2:
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        state, seq = (other, seq) if how == 2 else (bytes(damaged), seq)
        if how == 3:
            state, seq = bytes(damaged), seq ^ 1 << generator.randrange(6)
        connection.execute("UPDATE snapshots SET state = ?, seq = ? WHERE rowid = ?", (state, seq, row))
    connection.close()


def _compare(damaged: Path, expected_rows: list[Any], expected: list[Any], folder: Path) -> Outcome:
    """Compare the rows and the next decisions of a damaged storage with those of the undamaged one."""
    report = _report(damaged)
    decisions, issues = _copied(damaged, folder / "served", _next_decisions)
    if report or issues:
        return "reported", report or issues
    if decisions != expected:
        return "different", f"{decisions} instead of {expected}"
    rows = _rows(damaged)
    if rows == expected_rows:
        return "harmless", ""
    changed = next((pair for pair in zip(rows, expected_rows, strict=False) if pair[0] != pair[1]), (len(rows), "rows"))
    return ("unnoticed" if len(rows) == len(expected_rows) else "different"), f"{changed[0]} instead of {changed[1]}"


@cache
def _undamaged(source: Path, folder: Path) -> tuple[list[Any], list[Any]]:
    rows = _copied(source, folder / "expected", _rows)
    return rows, _copied(source, folder / "expected", _next_decisions)[0]


def _copied(source: Path, target: Path, function: Any) -> Any:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return function(target)


def _report(folder: Path) -> str:
    """Return what `larl replay` says; nothing if it finds no difference."""
    try:
        with opened(_storage(folder)) as database:
            check_complete(database)
            Replay(Journal(database)).run()
    except (Mismatch, StorageError) as error:
        return str(error)
    return ""


def _agent(damaged: Path, source: Path) -> Outcome:
    agents = [larl.Agent.load(path) for path in (damaged, source)]
    decisions = [[(made.arm, made.probability) for made in (agent.decide() for _ in range(5))] for agent in agents]
    return ("harmless" if decisions[0] == decisions[1] else "different"), ""


def run(flips: int, seed: int, folder: Path) -> dict[str, Counter[str]]:
    """Flip `flips` bits in files of each kind, one at a time; return counts of the outcomes by kind."""
    source = folder / "source"
    source.mkdir()
    prepare(source)
    counts = {kind: Counter[str]() for kind in KINDS}
    pool = _pool()
    for kind in KINDS:
        for number in range(flips):
            try:
                outcome, details = pool.submit(flip, kind, source, f"{seed} {kind} {number}", folder).result(LIMIT)
            except (BrokenProcessPool, TimeoutError) as error:
                outcome, details = "crashed", type(error).__name__
                for process in pool._processes.values():
                    process.kill()
                pool = _pool()
            counts[kind][outcome] += 1
            if outcome in ("different", "crashed", "unnoticed") and counts[kind][outcome] <= SHOWN:
                progress(f"{kind} {number}, {outcome}: {details[:200]}")
        progress(f"{kind}: {dict(counts[kind])}")
    pool.shutdown()
    return counts


def _pool() -> ProcessPoolExecutor:
    """Return a process of its own for the work: a damaged file may crash it."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--flips", type=int, default=100, help="for each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = run(options.flips, options.seed, Path(folder))
    table = Table("Bit flips", ("file", "flips", *(TITLES[outcome] for outcome in OUTCOMES)))
    for kind, found in counts.items():
        table.rows.append((kind, found.total(), *(found[outcome] for outcome in OUTCOMES)))
        bad = {outcome: found[outcome] for outcome in ("different", "crashed") if found[outcome]}
        table.failures += [f"{kind}: {bad}"] if bad else []
    table.finish(options.json)


if __name__ == "__main__":
    main()
