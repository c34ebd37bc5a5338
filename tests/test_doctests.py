"""The examples in docstrings of the library print what they show.

`larl` and `np` are defined in every example. A module that needs an optional dependency which is not installed is
skipped. The service has no examples for users.
"""

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import larl
from larl.policies import REGISTRY

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FOLDER = Path(larl.__path__[0])


def modules_with_examples() -> list[str]:
    """Return the names of modules whose source has a doctest prompt, without importing them."""
    files = [file for file in sorted(FOLDER.rglob("*.py")) if file.relative_to(FOLDER).parts[0] != "service"]
    return [module_name(file) for file in files if ">>> " in file.read_text(encoding="utf-8")]


def module_name(file: Path) -> str:
    return ".".join(["larl", *file.relative_to(FOLDER).with_suffix("").parts]).removesuffix(".__init__")


def examples(module: ModuleType) -> Iterator[doctest.DocTest]:
    """Yield the doctests of the module's own docstrings, also of functions that numba compiled."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    seen = set()
    for test in finder.find(module, extraglobs={"larl": larl, "np": np}):
        if test.examples:
            seen.add(test.name)
            yield test
    for name, value in vars(module).items():  # what the finder does not take for a function of the module
        function = getattr(value, "py_func", None)
        if function is not None and function.__module__ == module.__name__ and f"{module.__name__}.{name}" not in seen:
            yield from finder.find(function, f"{module.__name__}.{name}", globs=vars(module) | {"larl": larl, "np": np})


def run(test: doctest.DocTest) -> str:
    """Return the report of failed examples, empty if all pass."""
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append, clear_globs=False)
    return "".join(report)


def label(module: str) -> str:
    """Return an id that names the policy, so that one worker runs all tests that compile it (`conftest.group_of`)."""
    policies = {kind.__module__: name for name, kind in REGISTRY.items()}
    return f"{policies[module]}({module})" if module in policies else module


@pytest.mark.parametrize("name", modules_with_examples(), ids=label)
def test_examples_of_module_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs {error.name}, which is not installed")
    tests = list(examples(module))
    assert tests, f"{name} has `>>>` in a comment or string that is not a docstring"
    failures = [report for test in tests if (report := run(test))]
    assert not failures, "".join(failures)


def make_module(docstring: str) -> Any:
    module: Any = ModuleType("example")
    exec(f"def double(x):\n    '''{docstring}'''\n    return 2 * x\n", module.__dict__)
    return module


def test_wrong_output_fails() -> None:
    right = "Return 2 x.\n\n    >>> double(np.float64(larl.UCB().alpha)).item()\n    2.0\n    "
    assert [run(test) for test in examples(make_module(right))] == [""]
    (report,) = [run(test) for test in examples(make_module(right.replace("2.0", "3.0")))]
    assert "Expected:\n    3.0\nGot:\n    2.0" in report
