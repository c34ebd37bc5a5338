"""HTML representations for notebooks."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any

MAX_CHARACTERS = 200  # of a field


def html_table(title: str, rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a table with a title; a notebook adds its own style."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<div><strong>{escape(title)}</strong><table>{top}<tbody>{body}</tbody></table></div>"


def html_fields(spec: Any) -> str:
    """Return the fields of a frozen dataclass as a table."""
    return html_table(type(spec).__name__, [(item.name, _short(getattr(spec, item.name))) for item in fields(spec)])


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"
