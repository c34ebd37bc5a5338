"""Read the pages of the documentation: their code blocks, commands and expected output."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *_DOCS]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.S | re.M)


class Example(NamedTuple):
    """A block of Python and the output that the page shows, None if it shows none."""

    code: str
    output: str | None


class Command(NamedTuple):
    """A shell command, split into words, with the variables set before it and the output that the page shows."""

    words: tuple[str, ...]
    variables: dict[str, str]
    output: str | None

    def __str__(self) -> str:
        return shlex.join(self.words)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """Return the page without its blocks."""
    return _FENCE.sub("", text_of(page))


def python_examples(page: str) -> list[Example]:
    """Return the Python blocks; a `text` block that directly follows one is its output."""
    text, examples = text_of(page), []
    for block in _FENCE.finditer(text):
        if block[1] == "python":
            after = _FENCE.match(text[block.end() :].lstrip())
            examples.append(Example(block[2], after[2] if after and after[1] == "text" else None))
    return examples


def commands(page: str) -> Iterator[Command]:
    """Yield the commands of `sh` blocks and, with their output, those of `console` blocks."""
    for language, block in _FENCE.findall(text_of(page)):
        if language == "sh":
            for line in block.replace("\\\n", " ").splitlines():
                for part in line.split(" && "):
                    yield from _command(part, None)
        elif language == "console":
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                line, _, output = part.partition("\n")
                yield from _command(line, output)


def _command(line: str, output: str | None) -> Iterator[Command]:
    words = shlex.split(line, comments=True)
    variables = {}
    while words and re.match(r"[A-Z_]+=", words[0]):
        name, _, variables[name] = words.pop(0).partition("=")
    if words:
        yield Command(tuple(words), variables, output)


def inline_commands(page: str) -> list[str]:
    """Return the commands that are quoted in the text, such as `larl compare study.toml`."""
    return re.findall(r"`((?:larl|make|python|pip|\.ci/\w+) [^`]*)`", prose_of(page))


def links(page: str) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)]+)\)", prose_of(page))


def anchors(page: Path) -> set[str]:
    """Return the names of the page's sections in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
