"""What tests need besides Python and larl's dependencies. What is missing is skipped, and one line at the end says so.

A test asks for it by ``@pytest.mark.needs("chromium")``, a fixture by ``require("postgres")``. To add a requirement,
add a row to ``OPTIONAL``; how to install it is in CONTRIBUTING.md.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
POSTGRES = os.environ.get("LARL_POSTGRES", "")  # the URL of a database whose user may create others
LIFEJACKET = os.environ.get("LARL_LIFEJACKET_PYTHON", "")  # a Python that has lifejacket
PUBLISHED = Path(__file__).parents[2] / "shared" / "data" / "published_larl.npz"
REASON = "not tested here: "  # the start of the reason of every such skip


class Requirement(NamedTuple):
    """What is not tested without it, why not, and whether it is there."""

    tested: str
    missing: str
    present: Callable[[], bool]


OPTIONAL = {
    "chromium": Requirement("the page", "no Chromium", lambda: CHROMIUM is not None),
    "postgres": Requirement("PostgreSQL storage", "no server", lambda: bool(POSTGRES)),
    "lifejacket": Requirement("lifejacket's checks", "not installed", lambda: bool(LIFEJACKET)),
    "published": Requirement("the published decisions", "no data file", PUBLISHED.exists),
}


def require(*names: str) -> None:
    """Skip the running test unless all of these are there."""
    for name in names:
        if not OPTIONAL[name].present():
            pytest.skip(REASON + name)


def _missing(report: Any) -> str | None:
    """The requirement for want of which a test was skipped; None if it was skipped for another reason."""
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    _, found, name = reason.partition(REASON)
    return name if found else None


def split(reports: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Reports of skipped tests: those with a reason of their own, and the requirements that the others lacked."""
    others, lacking = [], set()
    for report in reports:
        if (name := _missing(report)) is None:
            others.append(report)
        else:
            lacking.add(name)
    return others, [name for name in OPTIONAL if name in lacking]


def summary(lacking: Iterable[str]) -> str:
    """The line about what was not tested; empty if everything was."""
    parts = [f"{OPTIONAL[name].tested} ({OPTIONAL[name].missing})" for name in lacking]
    return f"{REASON}{', '.join(parts)}; see CONTRIBUTING.md" if parts else ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose requirements are not there."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """End with one line about what was not tested, in place of a line for each test; the count of skips stays."""
    stats = terminalreporter.stats
    skipped = stats.get("skipped", [])
    others, lacking = split(skipped)
    if lacking:
        stats["skipped"] = others
    yield
    if lacking:
        stats["skipped"] = skipped
        terminalreporter.write_line(summary(lacking), yellow=True)
