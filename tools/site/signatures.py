"""A griffe extension: signatures show fields and dataclasses, and every parameter has its own type and default."""

import ast
import re
from typing import Any

import griffe

_PARAMETERS = re.compile(r"(?<=^Parameters\n----------\n).*?(?=^\w+\n-+\n|\Z)", re.M | re.S)
# The line `low, high : float, default 0 and 1` of a docstring, and its description. The signature has the defaults.
_GROUP = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)+)( :.*?)?(,? default .*|,? optional)?\n((?: {4}.*(?:\n|\Z))+)", re.M)
# The types of `keep : {"all", "summary"}` and `path : str, Path or None`, without words that describe a range.
_ITEM = r"(?:\"\w+\"|[\w.]+)"
_CHOICE = re.compile(
    rf"^(\w+ : )(?:\{{({_ITEM}(?:, {_ITEM})*)\}}|((?:{_ITEM}, )*{_ITEM} or {_ITEM}))(?=$|, (?:default|optional)\b)",
    re.M,
)


class LarlFields(griffe.Extension):
    """Replaces `s: int = required(…)` by `s: int`, `alpha: float = checked(…, 1.0)` by `alpha: float = 1.0`."""

    def on_attribute_instance(self, *, node: Any, attr: griffe.Attribute, **_: Any) -> None:
        """Set the default of a field to the one that users see."""
        call = getattr(node, "value", None)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return
        if call.func.id == "required":
            attr.value = None
        elif call.func.id == "checked" and isinstance(attr.value, griffe.ExprCall):
            attr.value = attr.value.arguments[1]

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Document every parameter by itself."""
        _separate(func)

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Mark classes decorated with `spec` as frozen dataclasses, and document every parameter by itself."""
        _separate(cls)
        if any(str(each.value) == "spec" for each in cls.decorators):
            dataclass = griffe.ExprName("dataclass", parent="dataclasses")
            cls.decorators.append(griffe.Decorator(dataclass, lineno=None, endlineno=None))


def _separate(documented: griffe.Object) -> None:
    """Document parameters that share a description one by one, and write choices in words or as a union of types.

    griffe takes the first choice in braces for the default, drops quotes, and shows a list of types as a tuple.
    """

    def entries(match: re.Match[str]) -> str:
        kind = match[2] if match[2] and match[2] != " :" else ""
        return "".join(f"{name}{kind}\n{match[4].rstrip()}\n" for name in match[1].split(", "))

    def union(match: re.Match[str]) -> str:
        choices = re.split(", | or ", match[2] or match[3])
        if any(each[0] == '"' or each.isdigit() for each in choices):
            return f"{match[1]}one of {', '.join(choices)}"
        return match[1] + " | ".join(choices)

    if documented.docstring is not None:
        text = documented.docstring.value
        documented.docstring.value = _PARAMETERS.sub(
            lambda section: _CHOICE.sub(union, _GROUP.sub(entries, section[0])), text
        )
