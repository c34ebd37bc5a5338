"""Docstrings are prepared for the API reference."""

import pytest

griffe = pytest.importorskip("griffe")

from tools.site.signatures import LarlFields  # noqa: E402


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("low, high : float, default 0.2 and 0.8", ["low : float", "high : float"]),
        ("time, action : optional", ["time", "action"]),
        ("act, **others", ["act", "**others"]),
        ('keep : {"all", "summary"}, optional', ['keep : one of "all", "summary", optional']),
        ("path : str, Path or None", ["path : str | Path | None"]),
        ('update_every : int, >= 1, or "night"', ['update_every : int, >= 1, or "night"']),
    ],
)
def test_every_parameter_has_its_own_line(line: str, result: list[str]) -> None:
    start, end = "Summary.\n\nParameters\n----------\n", "\nReturns\n-------\nint or float\n    A number."
    function = griffe.Function("f")
    function.docstring = griffe.Docstring(f"{start}{line}\n    Description.\n{end}")
    LarlFields().on_function_instance(func=function)
    assert function.docstring.value == start + "".join(f"{each}\n    Description.\n" for each in result) + end
