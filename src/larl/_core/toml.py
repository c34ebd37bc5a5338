"""Line numbers of tables and keys in a TOML file, which tomllib does not report, and a limit of its nesting."""

import re
import tomllib
from collections.abc import Sequence

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
SCALAR = re.compile(r"[^,\]}#\r\n]*")
# multi-line strings, then single-line strings; only double-quoted strings have escapes
STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)

MAX_DEPTH = 100  # nested lists, inline tables and parts of a dotted key; tomllib fails at some hundred
# Strings and comments, which can contain brackets and dots, then brackets and dots.
NESTING = re.compile(rf"{STRING.pattern}|#[^\n]*|[\[\]{{}}.]", re.DOTALL)
IN_KEY = re.compile(r"[A-Za-z0-9_ \t-]*")

KeyPath = tuple[str, ...]


def too_deep_line(text: str) -> int | None:
    """Return the first line (from 1) whose lists, tables or dotted keys are nested more than MAX_DEPTH deep."""
    line, end, depth, dots = 1, 0, 0, 0
    for match in NESTING.finditer(text):
        line += text.count("\n", end, match.start())
        first = match.group()[0]
        depth += (first in "[{") - (first in "]}")
        if not IN_KEY.fullmatch(text, end, match.start()) or first in "[]{}#":
            dots = 0
        dots += first == "."
        if max(depth, dots) > MAX_DEPTH:
            return line
        line, end = line + match.group().count("\n"), match.end()
    return None


def lines(text: str) -> dict[KeyPath, int]:
    """Return the line (from 1) of each table, key and list element, by path; `text` must be valid TOML.

    The path of [a."b c"] is ("a", "b c"), of d.e = 1 in it ("a", "b c", "d", "e"), of a first element (…, "[0]").
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def line_of(lines: dict[KeyPath, int], path: Sequence[str]) -> int:
    """Return the line of a path, or of the innermost table that contains it, or 1."""
    for end in range(len(path), 0, -1):
        if tuple(path[:end]) in lines:
            return lines[tuple(path[:end])]
    return 1


class _Scanner:
    """Reads a TOML document from start to end and stores the line of each path."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self._line, self._counted = 1, 0  # line of the last position that `line` was called at
        self.lines: dict[KeyPath, int] = {}

    def document(self) -> None:
        """Read the whole document."""
        table: KeyPath = ()
        self.skip(BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                self.skip(re.compile(r"\[+"))
                table = self.key(())
                self.skip(re.compile(r"[ \t]*\]+"))
            else:
                self.pair(table)
            self.skip(BLANK)

    def line(self) -> int:
        """Return the line of the position; positions only grow, so each newline is counted once."""
        self._line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move past the text that `pattern` matches here; return that text."""
        match = pattern.match(self.text, self.position)
        part = match.group() if match else ""
        self.position += len(part)
        return part

    def key(self, table: KeyPath) -> KeyPath:
        """Read a key, dotted or not; the line of each part is stored where it first appears."""
        path = table
        while True:
            self.skip(SPACE)
            line = self.line()
            path = (*path, self.key_part())
            self.lines.setdefault(path, line)
            self.skip(SPACE)
            if self.text[self.position : self.position + 1] != ".":
                return path
            self.position += 1

    def key_part(self) -> str:
        """Read one part of a dotted key, quoted or bare."""
        if self.text[self.position] in "\"'":
            return str(tomllib.loads(f"key = {self.skip(STRING)}")["key"])
        return self.skip(BARE)

    def pair(self, table: KeyPath) -> None:
        """Read a key and its value."""
        path = self.key(table)
        self.position += 1  # the equals sign
        self.skip(SPACE)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        """Read a string, list, inline table or scalar."""
        first = self.text[self.position]
        if first in "\"'":
            self.skip(STRING)
        elif first == "[":
            self.items(path, "]")
        elif first == "{":
            self.items(path, "}")
        else:
            self.skip(SCALAR)

    def items(self, path: KeyPath, end: str) -> None:
        """Read the elements of a list or the pairs of an inline table."""
        self.position += 1
        number = 0
        while True:
            self.skip(BLANK)
            if self.text[self.position] in (end, ","):
                self.position += 1
                if self.text[self.position - 1] == end:
                    return
            elif end == "}":
                self.pair(path)
            else:
                self.lines[*path, f"[{number}]"] = self.line()
                self.value((*path, f"[{number}]"))
                number += 1
