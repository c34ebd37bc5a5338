"""Every public name is on one page of the API reference, and every page is in the navigation."""

import ast
import inspect
import re
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import larl
from tests.documents import ROOT

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
MODULES = [
    "client",
    "gym",
    "logs",
    "plots",
    "policies",
    "priors",
    "study",
    "tables",
    "theory",
    "worlds",
]  # with public names of their own
INTERNAL = {"larl.live", "larl.reports", "larl.simulation"}  # public modules whose names are not
ELSEWHERE = {"larl.diagnosis", "larl.statespace"}  # names of larl itself; a few functions that are listed below
STATESPACE = [
    "forward_filter.forward_path",
    "kalman.filter_path",
    "steady_state.SteadyState",
    "steady_state.steady_state",
]


def documented() -> list[str]:
    return [name for page in PAGES for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.M)]


def names_of_module(module: ModuleType) -> set[str]:
    """Return what a module defines or exports by `import name as name`."""
    assert module.__file__
    found = set()
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname for each in node.names if each.asname and each.asname == each.name}
    return {name for name in found | set(getattr(module, "__all__", [])) if not name.startswith("_")}


def public() -> list[str]:
    names = [f"larl.{name}" for name in larl._NAMES]
    for module in MODULES:
        names += [f"larl.{module}.{name}" for name in names_of_module(getattr(larl, module))]
    return names + [f"larl.statespace.{name}" for name in STATESPACE]


def find(name: str) -> Any:
    """Return the object with a dotted name, below the longest part of it that is a module."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:  # a public name of a module is not its place: larl.plots is larl.simulation.plots
            continue
        return reduce(getattr, parts[end:], module)
    raise AssertionError(name)


@pytest.mark.parametrize("name", sorted(set(public())))
def test_public_name_is_documented_once(name: str) -> None:
    wanted = find(name)
    assert len([each for each in documented() if find(each) is wanted]) == 1, f"add `::: {name}` to a page of docs/api"


def test_every_public_module_is_covered() -> None:
    modules = {f"larl.{name}" for name in larl._MODULES}
    assert modules == {f"larl.{name}" for name in MODULES} | INTERNAL | ELSEWHERE


def test_documented_names_are_public_and_have_docstrings() -> None:
    known = [find(name) for name in public()]
    for name in documented():
        value = find(name)
        assert any(value is each for each in known), name
        assert name not in sys.modules, f"{name} is also a module, whose page it would be: {name}.{name.split('.')[-1]}"
        value = getattr(value, "py_func", value)  # a compiled function
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, name


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*"):
        if path.suffix in {".md", ".ipynb"}:
            page = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
            assert re.search(rf"(: |- ){re.escape(page)}$", navigation, re.M), f"add {page} to nav in mkdocs.yml"
