"""Figures that notebooks show as images, and helpers to fit text into them."""

import io
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from larl._core.validation import InvalidValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Distinguishable for colour-blind readers (most are Okabe & Ito's). Line styles distinguish the 11th line from the 1st.
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
NOTEBOOK_DPI = 120
CHARACTER_WIDTH = 0.58  # mean width of a character, as a share of the font size
NAME_WIDTH = 28  # characters of a name on one line


class NotebookFigure(Figure):
    """A figure that does not use pyplot. Notebooks show it as an image if it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=NOTEBOOK_DPI)
        return file.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure with a size in inches and a layout without overlaps."""
    return NotebookFigure(figsize=(width, height), layout="constrained")


def line_style(index: int) -> dict[str, Any]:
    """Return colour and line style of the line with this index."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[index // len(COLOURS) % len(STYLES)],
    }


def escape(name: str) -> str:
    """Return a name that matplotlib shows as written: no mathematics after `$`, not hidden by a leading `_`."""
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def wrap(name: str, width: int = NAME_WIDTH) -> str:
    """Return an escaped name, broken into lines of at most `width` characters."""
    return "\n".join(escape(line) for line in textwrap.wrap(name, max(width, 8)) or [""])


def longest_line(labels: list[str]) -> int:
    """Return the number of characters of the longest line."""
    return max((len(line) for label in labels for line in label.split("\n")), default=0)


def line_count(labels: list[str]) -> int:
    """Return the total number of lines."""
    return sum(label.count("\n") + 1 for label in labels)


def text_inches(characters: int, size: float) -> float:
    """Return the approximate width of a text in inches."""
    return CHARACTER_WIDTH * size * characters / 72


def fit_text(text: str, width: float, size: float) -> str:
    """Return the text broken into lines that fit into a width in inches."""
    characters = int(72 * width / (CHARACTER_WIDTH * size))
    return "\n".join(textwrap.fill(line, max(characters, 20)) for line in text.split("\n"))


def add_caption(figure: Figure, text: str, size: float = 8) -> None:
    """Add text below a figure, not wider than the figure."""
    figure.supxlabel(escape(fit_text(text, figure.get_figwidth() - 0.2, size)), fontsize=size)


def style_axes(axis: "Axes") -> None:
    """Add a light grid and remove the frame at the top and right."""
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


def check_result(owner: str, result: Any) -> None:
    """Raise InvalidValue unless `result` is a Result."""
    if not hasattr(result, "curves") or not hasattr(result, "data"):
        raise InvalidValue(owner, "result", result, "a larl.Result, as larl.compare returns")


def select_world(values: Any, name: str) -> Any:
    """Return the values of one world; all values if the comparison has one world without a name."""
    return values.sel(world=name) if name else values


@cache
def image(figure: Figure, kind: str) -> bytes:
    """Return the bytes of an image file; identical for every call."""
    target = io.BytesIO()
    if figure.get_layout_engine() is not None:  # the layout is computed once, not for every file
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    with mpl.rc_context({"svg.hashsalt": "larl", "svg.fonttype": "none"}):
        figure.savefig(target, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()
