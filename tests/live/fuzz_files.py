"""Mutated files with valid digests: each is refused or can be used; none crashes, hangs or raises another error.

    python -m tests.live.fuzz_files --mutations 10000 [--seed 0] [--json FILE] [--only TEXT]

The mutations run in a subprocess, which notes the outcome of each: a crash names its mutation, and another process goes
on with the next. A process without progress for `--seconds` is stopped and its mutation counts as hung.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

OUTCOMES = ("refused", "same", "error", "crashed", "hung")
STARTUP_SECONDS = 600.0  # a process may have to compile first


class Job(NamedTuple):
    """One mutation."""

    target: str
    number: int


def run(mutations: int, seed: int = 0, only: Sequence[str] = (), seconds: float = 60.0) -> dict[str, Counter[str]]:
    """The number of mutations by target and outcome. Failures are printed."""
    from tests.live.fuzz_targets import targets

    names = [each.name for each in targets() if not only or any(text in each.name for text in only)]
    shares = [mutations // len(names) + (number < mutations % len(names)) for number in range(len(names))]
    jobs = [Job(name, i) for name, share in zip(names, shares, strict=True) for i in range(share)]
    outcomes: list[str] = []
    while len(outcomes) < len(jobs):  # again after a crash, with the next mutation
        with tempfile.TemporaryDirectory() as folder:
            done, end = _run_process(Path(folder), jobs[len(outcomes) :], seed, seconds)
            outcomes += done
            if len(outcomes) < len(jobs):
                _report(end, jobs[len(outcomes)], seed, Path(folder))
                outcomes.append(end)
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for job, outcome in zip(jobs, outcomes, strict=True):
        found[job.target][outcome] += 1
    return found


def _report(outcome: str, job: Job, seed: int, folder: Path) -> None:
    note = folder / "note"
    text = note.read_text(encoding="utf-8") if note.exists() else "no mutation was made"
    print(f"{outcome}: {job.target}, seed {seed}, mutation {job.number}: {text[:300]}", flush=True)


def _run_process(folder: Path, jobs: list[Job], seed: int, seconds: float) -> tuple[list[str], str]:
    """The outcomes of a process, and what it means if it has not finished: crashed or hung."""
    progress = folder / "progress"
    (folder / "jobs").write_text(json.dumps(jobs), encoding="utf-8")
    command = [sys.executable, "-m", "tests.live.fuzz_files", "--worker", str(folder), "--seed", str(seed)]
    process = subprocess.Popen(command)
    seen, since, end = (False, -1), time.monotonic(), "crashed"
    try:
        while process.poll() is None:
            has_started = (folder / "note").exists()  # otherwise it may be compiling
            now = has_started, progress.stat().st_size if progress.exists() else 0
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > (seconds if has_started else STARTUP_SECONDS):
                end = "hung"
                break
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    return progress.read_text(encoding="utf-8").split() if progress.exists() else [], end


def _work(folder: Path, seed: int) -> None:
    """Try the mutations of the file `jobs`; one word for each goes to the file `progress`."""
    from tests.live.fuzz_targets import targets

    by_name = {each.name: each for each in targets()}
    jobs = [Job(*each) for each in json.loads((folder / "jobs").read_text(encoding="utf-8"))]
    with (folder / "progress").open("a", encoding="utf-8") as progress:
        for job in jobs:
            if job.number == 0:
                print(f"{time.strftime('%H:%M:%S')} {job.target}", flush=True)
                (folder / "note").unlink(missing_ok=True)  # the target may have to compile first
            try:
                is_refused = by_name[job.target].try_one(folder, Random(f"{seed} {job.target} {job.number}"))
                outcome = "refused" if is_refused else "same"
            except Exception:
                _report("error", job, seed, folder)
                print("".join(traceback.format_exc().splitlines(keepends=True)[-7:]), flush=True)
                outcome = "error"
            progress.write(outcome + "\n")
            progress.flush()


def totals(found: dict[str, Counter[str]]) -> dict[str, int]:
    """The number of mutations and of each outcome; an unexpected exception counts as a crash."""
    total = sum(found.values(), Counter[str]())
    return {
        "mutations": total.total(),
        "refused": total["refused"],
        "same": total["same"],
        "crashed": total["crashed"] + total["error"],
        "hung": total["hung"],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if a mutation crashed or hung."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append", default=[], help="targets whose name contains this text")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given: Any = parser.parse_args(arguments)
    if given.worker:
        _work(given.worker, given.seed)
        return 0
    found = run(given.mutations, given.seed, given.only, given.seconds)
    for name, outcomes in found.items():
        print("  ".join([*(f"{each} {outcomes[each]:5}" for each in OUTCOMES), name]))
    counts = totals(found)
    print("  ".join(f"{name}: {count}" for name, count in counts.items()))
    if given.json:
        given.json.write_text(json.dumps(counts) + os.linesep, encoding="utf-8")
    return 1 if counts["crashed"] or counts["hung"] else 0


if __name__ == "__main__":
    sys.exit(main())
