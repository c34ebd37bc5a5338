"""Run all tests of reliability at full length and write docs/reliability.md: `make torture`.

python -m tests.service.reliability [--minutes 30] [--only NAME] [--page]    --page: only write the page
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import larl
from tests.optional import POSTGRES
from tests.service.torture.disk import can_compile
from tests.service.torture.failover import programs

FOLDER, PAGE = Path("results/reliability"), Path("docs/reliability.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TESTS = ("concurrency", "interface", "model", "faults", "alerts", "auth", "requests", "trial")
EXAMPLES = 1000  # requests per operation
PARTS = ("power_cuts", "io_errors", "bit_flips", "stops", "failover", "neighbours")
MUTATIONS = 10_000  # of agent files


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="limit of the kills of each storage")
    parser.add_argument("--only", choices=["kills", "tests", "files", *PARTS], help="run one part; keep the others")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    passed = options.page or _run(options.minutes, options.only)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"wrote {PAGE}")
    sys.exit(0 if passed else 1)


def _run(minutes: float, only: str | None) -> bool:
    """Run everything, the kills of all storages at the same time; return whether all passed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if only is None:
        for old in FOLDER.glob("*.json"):
            old.unlink()
    storages = ("sqlite", *(["postgresql"] if POSTGRES else []))
    module = [sys.executable, "-m"]
    kills = [[*module, "tests.service.crash_test", "--storage", name, "--minutes", str(minutes)] for name in storages]
    tests = [*module, "pytest", "--quiet", *(f"tests/service/test_{name}.py" for name in TESTS)]
    steps = {"kills": kills, "tests": [tests]}
    for name in PARTS:
        steps[name] = [[*module, f"tests.service.torture.{name}", "--json", str(FOLDER / f"{name}.json")]]
    fuzz = [*module, "tests.live.fuzz_files", "--mutations", str(MUTATIONS), "--json", str(FOLDER / "files.json")]
    steps["files"] = [fuzz]
    results = {name: _step(name, commands) for name, commands in steps.items() if only in (None, name)}
    print("\n".join(f"{name}: {'passed' if passed else 'FAILED'}" for name, passed in results.items()))
    return all(results.values())


def _step(name: str, commands: list[list[str]]) -> bool:
    """Run commands at the same time; return whether all passed."""
    if reason := _missing(name):
        print(f"{name}: not run: {reason}", flush=True)
        return True
    started = time.monotonic()
    print(f"{name}: started", flush=True)
    environment = os.environ | {"LARL_RELIABILITY": str(FOLDER.resolve()), "LARL_EXAMPLES": str(EXAMPLES)}
    processes = [subprocess.Popen(command, env=environment) for command in commands]
    codes = [process.wait() for process in processes]
    passed = not any(codes)
    print(f"{name}: {'passed' if passed else 'FAILED'} after {(time.monotonic() - started) / 60:.1f} min", flush=True)
    return passed


def _missing(name: str) -> str:
    """Return what a part needs and is not here."""
    if name in ("power_cuts", "io_errors") and not can_compile():
        return "it needs Linux and a C compiler"
    if name == "failover" and programs() is None:
        return "it needs the programs of PostgreSQL"
    return ""


def tables() -> str:
    """Return the figures of the page, from the results that exist."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    parts = [f"larl {larl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores."]
    parts += ["### Kills", _kills(found), "### Retries, arbitrary requests, arbitrary order", _others(found)]
    for name in PARTS:
        if run := found.get(name):
            parts += [f"### {run['title']}", _table(run["columns"], run["rows"]), *filter(None, [run["note"]])]
            parts += ["\n".join(f"- failed: {failure}" for failure in run["failures"])] if run["failures"] else []
    return "\n\n".join(parts)


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(_shown, row)) + " |" for row in rows)])


def _kills(found: dict[str, Any]) -> str:
    rows = {
        "processes": "processes",
        "kills": "kills",
        "decisions and rewards acknowledged": "acknowledged",
        "of them by a retry with the same key": "retried",
        "rows of the journal": "events",
        "rows replayed": "replayed",
        "seconds from start to first response, median": "start_s",
        "**lost**": "lost",
        "**changed**": "changed",
        "**duplicated**": "duplicated",
        "**in the journal without a request**": "unrequested",
        "**gaps in numbers or steps**": "gaps",
        "**different in the replay**": "not_replayed",
        "**failed integrity checks**": "corrupt",
        "**valid requests refused**": "refused",
        "fallbacks, flagged": "fallbacks",
    }
    runs = [run for name, run in found.items() if name.startswith("kills-")]
    return _table(
        ["", *(run["storage"] for run in runs)], [[title, *(run[name] for run in runs)] for title, name in rows.items()]
    )


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def _others(found: dict[str, Any]) -> str:
    lines = ["| test | size | failures |", "| --- | --- | --- |"]
    for name in ("sqlite", "postgresql"):
        if run := found.get(f"retries-{name}"):
            what = f"{run['clients']} clients, each {run['rounds']} times the same {run['keys']} requests"
            size = f"{run['requests']:,} requests to {run['processes']} process(es), {run['decisions']} decisions"
            lines.append(f"| {what} ({name}) | {size} | {run['different']} |")
    if run := found.get("interface"):
        size = f"{run['operations']} operations, {run['examples']:,} requests each"
        lines.append(f"| arbitrary requests, valid and invalid | {size} | 0 |")
    if run := found.get("model"):
        lines.append(
            f"| arbitrary order of requests and restarts, compared with a model | {run['requests']:,} requests | 0 |"
        )
    if run := found.get("files"):
        size = f"{run['mutations']:,} mutations: {run['refused']:,} refused, {run['same']:,} without a difference"
        lines.append(f"| changed files of agents, cohorts and results | {size} | {run['crashed'] + run['hung']} |")
    if run := found.get("trial"):
        size = f"{run['units']} units × {run['steps']} decisions, {run['replayed']}"
        passed = "; its export passes lifejacket's checks" if run["checked"] else ""
        lines.append(f"| a complete trial (`larl rehearse rehearsal.toml`) | {size}{passed} | 0 |")
    return "\n".join(lines) if len(lines) > 2 else "The other tests were not run at full length."


if __name__ == "__main__":
    main()
