"""A matplotlib figure that a notebook shows, and text that fits into it."""

import io
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that the colour-blind tell apart (most of them Okabe & Ito's); line styles tell the eleventh from the first.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C6D31",
    "#882255",
    "#999999",
)
STYLES = ("-", "--", "-.", ":")
DPI = 120  # of the image in a notebook
EM = 0.58  # the mean width of a character, as a share of the font size
NAME = 28  # characters of a name on one line


class NotebookFigure(Figure):
    """A figure made without pyplot. Notebooks show it as an image when it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, whose parts do not overlap."""
    return NotebookFigure(figsize=(width, height), layout="constrained")


def look(place: int) -> dict[str, Any]:
    """Colour and line style of the line with this number."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": STYLES[place // len(COLOURS) % len(STYLES)],
    }


def plain(name: str) -> str:
    """A name as it is written: a dollar sign starts no mathematics, and a leading underscore hides nothing."""
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def wrapped(name: str, width: int = NAME) -> str:
    """A name on as many lines as it needs."""
    return "\n".join(plain(line) for line in textwrap.wrap(name, max(width, 8)) or [""])


def longest(labels: list[str]) -> int:
    """The characters of the longest line of some labels."""
    return max((len(line) for label in labels for line in label.split("\n")), default=0)


def line_count(labels: list[str]) -> int:
    """How many lines some labels have together."""
    return sum(label.count("\n") + 1 for label in labels)


def inches(characters: int, size: float) -> float:
    """The width of a text in inches."""
    return EM * size * characters / 72


def fill(text: str, width: float, size: float) -> str:
    """The text broken into lines that fit into so many inches."""
    characters = int(72 * width / (EM * size))
    return "\n".join(textwrap.fill(line, max(characters, 20)) for line in text.split("\n"))


def caption(figure: Figure, text: str, size: float = 8) -> None:
    """Text below a figure, no wider than it."""
    figure.supxlabel(plain(fill(text, figure.get_figwidth() - 0.2, size)), fontsize=size)


def tidy(axis: "Axes") -> None:
    """A light grid, no frame at the top and right."""
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


@cache
def image(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of an image file; identical for every call."""
    target = io.BytesIO()
    if figure.get_layout_engine() is not None:  # lay it out once, not for every file
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    with mpl.rc_context({"svg.hashsalt": "larl", "svg.fonttype": "none"}):
        figure.savefig(target, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()
