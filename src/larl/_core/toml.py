"""Where things are in a TOML file: the line of every table and key, which tomllib does not tell."""

import re
import tomllib
from collections.abc import Sequence

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
SCALAR = re.compile(r"[^,\]}#\r\n]*")
# strings: of several lines, then of one; escapes matter only between double quotes
STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)

Path = tuple[str, ...]


def lines(text: str) -> dict[Path, int]:
    """The line (from 1) on which each table, key and element of a list begins; `text` is valid TOML.

    [a."b c"] is ("a", "b c"), d.e = 1 in it ("a", "b c", "d", "e"), the first of a list ("a", …, "[0]").
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


def line_of(found: dict[Path, int], path: Sequence[str]) -> int:
    """The line of a path, else of the innermost table around it, else 1."""
    for end in range(len(path), 0, -1):
        if tuple(path[:end]) in found:
            return found[tuple(path[:end])]
    return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self.skip(BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self.skip(re.compile(r"\[+"))
                table = self.key(())
                self.skip(re.compile(r"[ \t]*\]+"))
            else:
                self.pair(table)
            self.skip(BLANK)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        part = match.group() if match else ""
        self.at += len(part)
        return part

    def key(self, table: Path) -> Path:
        """A key, dotted or not; each of its parts is noted where it first appears."""
        path = table
        while True:
            self.skip(SPACE)
            line = self.text.count("\n", 0, self.at) + 1
            path = (*path, self.word())
            self.found.setdefault(path, line)
            self.skip(SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return path
            self.at += 1

    def word(self) -> str:
        if self.text[self.at] in "\"'":
            return str(tomllib.loads(f"it = {self.skip(STRING)}")["it"])
        return self.skip(BARE)

    def pair(self, table: Path) -> None:
        path = self.key(table)
        self.at += 1  # the equals sign
        self.skip(SPACE)
        self.value(path)

    def value(self, path: Path) -> None:
        sign = self.text[self.at]
        if sign in "\"'":
            self.skip(STRING)
        elif sign == "[":
            self.items(path, "]")
        elif sign == "{":
            self.items(path, "}")
        else:
            self.skip(SCALAR)

    def items(self, path: Path, end: str) -> None:
        """The elements of a list or the pairs of an inline table."""
        self.at += 1
        number = 0
        while True:
            self.skip(BLANK)
            if self.text[self.at] in (end, ","):
                self.at += 1
                if self.text[self.at - 1] == end:
                    return
            elif end == "}":
                self.pair(path)
            else:
                self.found[*path, f"[{number}]"] = self.text.count("\n", 0, self.at) + 1
                self.value((*path, f"[{number}]"))
                number += 1
