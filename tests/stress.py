"""Repeat the tests that depend on time on a loaded machine: `make stress`.

    python -m tests.stress [--runs 30] [--load 2] [-- options and paths for pytest]

It runs the tests with the marker `timing`, beside `--load` busy processes. The output of a failed run is in
results/stress.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path("results/stress")
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(10**6): pass"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextmanager
def load(count: int) -> Iterator[None]:
    """Keep this many processors busy."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def stress(runs: int, options: Sequence[str], folder: Path) -> Counter[str]:
    """Run pytest `runs` times and count the failures of each test. A run can also fail without a failed test."""
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-m", "timing", *options]
    # Tests start hundreds of processes: without bytecode on disk, each compiles all modules again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    failures: Counter[str] = Counter()
    for run in range(1, runs + 1):
        start = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        failed = (FAILED.findall(done.stdout) or [f"pytest: exit code {done.returncode}"]) if done.returncode else []
        failures.update(failed)
        if failed:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"run-{run}.log").write_text(done.stdout, encoding="utf-8")
        last_line = done.stdout.strip().splitlines()[-1:] or ["no output"]
        seconds = time.monotonic() - start
        print(f"run {run} of {runs}, {seconds:.0f} s: {last_line[0].strip('= ')}", *failed, sep="\n  ", flush=True)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--load", type=int, default=2, help="number of busy processes")
    parser.add_argument("options", nargs="*", help="options and paths for pytest, after --")
    arguments = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    with load(arguments.load):
        failures = stress(arguments.runs, arguments.options, FOLDER)
    setting = f"{arguments.runs} runs on {os.cpu_count()} cores with {arguments.load} busy processes"
    print(f"{setting}: {failures.total()} failures")
    for name, count in failures.most_common():
        print(f"  {count} × {name}; the output is in {FOLDER}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
