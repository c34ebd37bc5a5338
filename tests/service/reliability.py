"""Everything that tries the service's word, at full length, then docs/reliability.md: `make torture`.

python -m tests.service.reliability [--minutes 60] [--page]    at most so long for each storage; --page: only the page
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

FOLDER, PAGE = Path("results/torture"), Path("docs/reliability.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TESTS = ("concurrency", "interface", "model", "faults", "access", "trial")
EXAMPLES = 1000  # requests of each operation


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    kept = given.page or _try(given.minutes)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"wrote {PAGE}")
    sys.exit(0 if kept else 1)


def _try(minutes: float) -> bool:
    """Kill, then test at full length; whether all went well. What is not tried leaves no figure of an earlier run."""
    for old in FOLDER.glob("*.json"):
        old.unlink()
    commands = [
        [sys.executable, "-m", "tests.service.torture", "--storage", storage, "--minutes", str(minutes)]
        for storage in ("sqlite", *(["postgresql"] if POSTGRES else []))
    ]
    tests = [f"tests/service/test_{name}.py" for name in TESTS]
    commands.append([sys.executable, "-m", "pytest", "--quiet", *tests])
    environment = os.environ | {"LARL_TORTURE": str(FOLDER.resolve()), "LARL_EXAMPLES": str(EXAMPLES)}
    codes = [subprocess.run(command, env=environment).returncode for command in commands]
    return not any(codes)


def tables() -> str:
    """The page's figures, from those that are there."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    parts = [f"larl {larl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores.", _kills(found)]
    return "\n\n".join([*parts, _others(found)])


def _kills(found: dict[str, Any]) -> str:
    rows = {
        "processes": "processes",
        "kills": "kills",
        "decisions and rewards acknowledged": "acknowledged",
        "of them only by a retry under the same key": "asked_again",
        "rows of the journal": "rows",
        "rows replayed": "replayed",
        "seconds from start to first answer, median": "start_s",
        "**lost**": "lost",
        "**not as acknowledged**": "changed",
        "**twice**": "duplicated",
        "**in the journal though nobody asked**": "unasked",
        "**gaps in numbers or steps**": "gaps",
        "**not the same when replayed**": "not_replayed",
        "**failed integrity checks**": "corrupt",
        "**refused without need**": "refused",
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
    lines = ["| what was tried | how much | wrong |", "| --- | --- | --- |"]
    for name in ("sqlite", "postgresql"):
        if run := found.get(f"retries-{name}"):
            what = f"{run['clients']} clients, each {run['rounds']} times the same {run['keys']} requests"
            how = f"{run['requests']:,} requests to {run['processes']} process(es), {run['decisions']} decisions"
            lines.append(f"| {what} ({name}) | {how} | {run['different']} |")
    if run := found.get("interface"):
        much = f"{run['operations']} operations, {run['examples']:,} requests each"
        lines.append(f"| any request, as the description has it and not | {much} | 0 |")
    if run := found.get("model"):
        lines.append(f"| any order of requests and restarts, beside a model | {run['asked']:,} requests | 0 |")
    if run := found.get("trial"):
        much = f"{run['units']} units × {run['steps']} decisions, {run['replayed']}"
        passed = "; its export passes lifejacket's checks" if run["checked"] else ""
        lines.append(f"| a whole trial (`larl rehearse rehearsal.toml`) | {much}{passed} | 0 |")
    return "\n".join(lines) if len(lines) > 2 else "The other trials were not run at full length."


if __name__ == "__main__":
    main()
