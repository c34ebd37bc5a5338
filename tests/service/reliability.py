"""Run all tests of reliability at full length and write docs/reliability.md: `make torture`.

python -m tests.service.reliability [--minutes 60] [--page]    minutes: for each storage; --page: only write the page
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import larl
from tests.optional import POSTGRES

FOLDER, PAGE = Path("results/reliability"), Path("docs/reliability.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TESTS = ("concurrency", "interface", "model", "faults", "alerts", "auth", "requests", "trial")
EXAMPLES = 1000  # requests per operation


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    passed = options.page or _run(options.minutes)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"wrote {PAGE}")
    sys.exit(0 if passed else 1)


def _run(minutes: float) -> bool:
    """Run everything; return whether all passed. Results of earlier runs are removed first."""
    for old in FOLDER.glob("*.json"):
        old.unlink()
    commands = [
        [sys.executable, "-m", "tests.service.crash_test", "--storage", storage, "--minutes", str(minutes)]
        for storage in ("sqlite", *(["postgresql"] if POSTGRES else []))
    ]
    tests = [f"tests/service/test_{name}.py" for name in TESTS]
    commands.append([sys.executable, "-m", "pytest", "--quiet", *tests])
    environment = os.environ | {"LARL_RELIABILITY": str(FOLDER.resolve()), "LARL_EXAMPLES": str(EXAMPLES)}
    codes = [subprocess.run(command, env=environment).returncode for command in commands]
    return not any(codes)


def tables() -> str:
    """Return the figures of the page, from the results that exist."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    parts = [f"larl {larl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores.", _kills(found)]
    return "\n\n".join([*parts, _others(found)])


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
    lines = ["| | " + " | ".join(run["storage"] for run in runs) + " |", "| --- |" + " --- |" * len(runs)]
    for title, name in rows.items():
        lines.append(f"| {title} | " + " | ".join(_shown(run[name]) for run in runs) + " |")
    return "\n".join(lines)


def _shown(value: float) -> str:
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
    if run := found.get("trial"):
        size = f"{run['units']} units × {run['steps']} decisions, {run['replayed']}"
        passed = "; its export passes lifejacket's checks" if run["checked"] else ""
        lines.append(f"| a complete trial (`larl rehearse rehearsal.toml`) | {size}{passed} | 0 |")
    return "\n".join(lines) if len(lines) > 2 else "The other tests were not run at full length."


if __name__ == "__main__":
    main()
