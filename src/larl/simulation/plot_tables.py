"""Figures of tables: shares by row and column, regret over the hyper-parameters of a grid."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from larl._core.validation import InvalidValue
from larl.simulation.figure import caption, fill, inches, line_count, longest, look, new_figure, plain, tidy, wrapped

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_closed(rows: Sequence[str], policies: Sequence[str], found: Sequence[Sequence[tuple[float, float]]]) -> Figure:
    """Shares closed in percent, a row for each world, a mark for each policy, bars of two standard errors."""
    names = [wrapped(name) for name in policies]
    columns = max(1, int(7.5 / inches(longest(names) + 9, 8)))
    tall = 1.4 + max(0.36, 0.1 * len(names)) * len(rows) + 0.16 * -(-line_count(names) // columns)
    figure = new_figure(8.0, tall)
    axis = figure.subplots()
    for place, policy in enumerate(names):
        y = np.arange(len(rows)) + min(0.16, 0.7 / len(names)) * (place - (len(names) - 1) / 2)
        share, error = np.array([row[place] for row in found]).T
        mark, colour = "os^Dv"[place % 5], look(place)["color"]
        axis.errorbar(share, y, xerr=2 * error, fmt=mark, markersize=4.5, color=colour, linewidth=1.0, label=policy)
    axis.axvline(0, color="0.5", linewidth=0.8)
    axis.axvline(100, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(rows)), [wrapped(row, 40) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("share closed of the gap LARL (BIC) → Kalman, percent (bars: two standard errors)", fontsize=8)
    tidy(axis)
    figure.legend(loc="outside upper center", ncols=min(columns, len(names)), fontsize=8, frameon=False)
    return figure


def plot_shares(rows: Sequence[str], columns: Sequence[str], shares: Any) -> Figure:
    """A table of regret as a share of random's, coloured: blue is less, red is more; empty where there is none."""
    down, across = [wrapped(row) for row in rows], [wrapped(column) for column in columns]
    wide = 0.5 + inches(longest(down), 8) + max(0.78 * len(columns), 1.8)
    tall = 0.7 + 0.65 * inches(longest(across), 8) + max(0.36 * len(rows), 0.16 * line_count(down), 0.8)
    figure = new_figure(wide + 0.2 * inches(longest(across), 8), tall)
    axis = figure.subplots()
    axis.imshow(shares, cmap=colormaps["RdBu_r"], vmin=0.0, vmax=1.5, aspect="auto")
    for i, j in np.argwhere(np.isfinite(shares)):
        dark = abs(shares[i, j] - 0.75) > 0.5
        axis.text(j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axis.set_xticks(range(len(columns)), across, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_yticks(range(len(rows)), down, fontsize=8)
    axis.set_title("regret as a share of random's", fontsize=9)
    return figure


def plot_heat(squares: "Mapping[tuple[str, str], pd.DataFrame]") -> Figure:
    """Mean total regret over two hyper-parameters: (grid, world) → square, a row of panels for each grid.

    Each panel has its own scale: darker is less regret. The least is framed.
    """
    _check_tables("plot_heat", squares)
    titles, places = (list(dict.fromkeys(key[part] for key in squares)) for part in (0, 1))
    down, across = (max(square.shape[axis] for square in squares.values()) for axis in (0, 1))
    rows = max(longest([str(each) for each in square.index]) for square in squares.values())
    columns = max(longest([str(each) for each in square.columns]) for square in squares.values())
    cell = max(0.62, inches(columns, 8) + 0.1)
    panel = max(0.6 + inches(rows, 8) + cell * across, 2.2)
    text = "mean total regret over units and any further hyper-parameters; darker is less, the least of a panel framed"
    wide = 0.6 + len(places) * panel
    labels = {key: wrapped(_joined(key), int(9 * panel)) for key in squares}
    above = 0.16 * max(label.count("\n") + 1 for label in labels.values())
    figure = new_figure(wide, 0.2 + 0.15 * line_count([fill(text, wide, 8)]) + len(titles) * (0.7 + above + 0.5 * down))
    axes = figure.subplots(len(titles), len(places), squeeze=False)
    for i, title in enumerate(titles):
        for j, place in enumerate(places):
            _heat(axes[i, j], squares[title, place])
            axes[i, j].set_title(labels[title, place], fontsize=9)
            if j == 0:
                axes[i, j].set_ylabel(plain(str(squares[title, place].index.name)), fontsize=9)
    caption(figure, text)
    return figure


def _check_tables(owner: str, tables: Any) -> None:
    fine = isinstance(tables, Mapping) and tables and all(isinstance(key, tuple) and len(key) == 2 for key in tables)
    if not fine or not all(hasattr(table, "columns") for table in tables.values()):
        raise InvalidValue(owner, "tables", tables, "a mapping from (grid, world) to tables, as larl.tables makes")


def _joined(key: tuple[str, str]) -> str:
    return " · ".join(part for part in key if part)


def _heat(axis: "Axes", square: "pd.DataFrame") -> None:
    values = square.to_numpy()
    low, high = float(values.min()), float(values.max())
    axis.imshow(values, cmap=colormaps["Blues_r"], vmin=low, vmax=high + 0.25 * (high - low) or None, aspect="auto")
    for i, j in np.ndindex(values.shape):
        dark = values[i, j] <= low + 0.55 * (high - low)
        text = f"{values[i, j]:.1f}"
        axis.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else "black")
    i, j = np.unravel_index(values.argmin(), values.shape)
    axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.0, clip_on=False))
    axis.set_xticks(range(values.shape[1]), [plain(str(name)) for name in square.columns], fontsize=8)
    axis.set_yticks(range(values.shape[0]), [plain(str(name)) for name in square.index], fontsize=8)
    axis.set_xlabel(plain(str(square.columns.name)), fontsize=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def plot_line(lines: "Mapping[tuple[str, str], pd.DataFrame]") -> Figure:
    """Mean total regret over one hyper-parameter, (grid, world) → table of mean, low and high; a panel for each world.

    Bars are 95% intervals of the mean. The least of each line is marked.
    """
    _check_tables("plot_line", lines)
    titles, places = (list(dict.fromkeys(key[part] for key in lines)) for part in (0, 1))
    parameter = str(next(iter(lines.values())).index.name)
    names = [wrapped(title) for title in titles]
    beside = 0.9 + inches(longest(names), 8)
    text = "mean total regret over units and any further hyper-parameters; bars: 95% interval of the mean; ○ the least"
    wide = beside + 2.9 * len(places)
    figure = new_figure(wide, max(3.2, 0.5 + 0.17 * line_count(names)) + 0.15 * line_count([fill(text, wide, 8)]))
    axes = figure.subplots(1, len(places), squeeze=False)[0]
    for axis, world in zip(axes, places, strict=True):
        for place, (title, label) in enumerate(zip(titles, names, strict=True)):
            table = lines[title, world]
            numeric = all(isinstance(value, int | float) for value in table.index)
            x = np.array(table.index, dtype=float) if numeric else np.arange(len(table))
            mean = table["mean"].to_numpy()
            bars = np.abs(table[["low", "high"]].to_numpy().T - mean)
            style, best = look(place), int(mean.argmin())
            axis.errorbar(x, mean, None if np.isnan(bars).any() else bars, **style, marker=".", capsize=2, label=label)
            axis.plot(x[best], mean[best], "o", color=style["color"], markersize=8, fillstyle="none")
            if not numeric or len(table) <= 8:
                axis.set_xticks(x, [plain(str(value)) for value in table.index])
        axis.set_title(wrapped(world, 36), fontsize=10)
        axis.set_xlabel(plain(parameter), fontsize=9)
        tidy(axis)
    axes[0].set_ylabel("total regret", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    caption(figure, text)
    return figure
