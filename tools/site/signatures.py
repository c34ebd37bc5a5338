"""A griffe extension: larl's `required`, `checked` and `spec` look like fields and dataclasses in signatures."""

import ast
from typing import Any

import griffe


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

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Mark classes decorated with `spec` as frozen dataclasses."""
        if any(str(each.value) == "spec" for each in cls.decorators):
            dataclass = griffe.ExprName("dataclass", parent="dataclasses")
            cls.decorators.append(griffe.Decorator(dataclass, lineno=None, endlineno=None))
