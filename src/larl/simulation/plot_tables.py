"""Figures of tables: shares by row and column, and regret over the hyper-parameters of a grid."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from larl._core.validation import InvalidValue
from larl.simulation.figure import (
    add_caption,
    escape,
    fit_text,
    line_count,
    line_style,
    longest_line,
    new_figure,
    style_axes,
    text_inches,
    wrap,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_gap_closed(
    rows: Sequence[str], policies: Sequence[str], shares: Sequence[Sequence[tuple[float, float]]]
) -> Figure:
    """Plot which share of the gap between LARL (BIC) and the Kalman filter each policy closes in each world.

    Parameters
    ----------
    rows : sequence of str
        Names of the worlds.
    policies : sequence of str
        Names of the policies; each has its own marker.
    shares : nested sequence of (float, float)
        For each world and policy the share and its standard error, in percent.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; bars are two standard errors.

    Examples
    --------
    >>> import larl
    >>> figure = larl.plots.plot_gap_closed(["k = 1"], ["Auto"], [[(54.0, 2.0)]])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['k = 1']
    """
    names = [wrap(name) for name in policies]
    columns = max(1, int(7.5 / text_inches(longest_line(names) + 9, 8)))
    height = 1.4 + max(0.36, 0.1 * len(names)) * len(rows) + 0.16 * -(-line_count(names) // columns)
    figure = new_figure(8.0, height)
    axis = figure.subplots()
    for index, policy in enumerate(names):
        y = np.arange(len(rows)) + min(0.16, 0.7 / len(names)) * (index - (len(names) - 1) / 2)
        share, error = np.array([row[index] for row in shares]).T
        mark, colour = "os^Dv"[index % 5], line_style(index)["color"]
        axis.errorbar(share, y, xerr=2 * error, fmt=mark, markersize=4.5, color=colour, linewidth=1.0, label=policy)
    axis.axvline(0, color="0.5", linewidth=0.8)
    axis.axvline(100, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(rows)), [wrap(row, 40) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("share closed of the gap LARL (BIC) → Kalman, percent (bars: two standard errors)", fontsize=8)
    style_axes(axis)
    figure.legend(loc="outside upper center", ncols=min(columns, len(names)), fontsize=8, frameon=False)
    return figure


def plot_shares(rows: Sequence[str], columns: Sequence[str], shares: Any) -> Figure:
    """Plot a table of regret as a share of the random policy's regret; blue is less, red is more.

    Parameters
    ----------
    rows, columns : sequence of str
        Labels of the table.
    shares : array of shape (rows, columns)
        The shares; a cell with nan stays empty.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Examples
    --------
    >>> import larl, numpy
    >>> figure = larl.plots.plot_shares(["k = 1"], ["LARL", "UCB"], numpy.array([[0.4, 0.8]]))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.40', '0.80']
    """
    row_labels, column_labels = [wrap(row) for row in rows], [wrap(column) for column in columns]
    width = 0.5 + text_inches(longest_line(row_labels), 8) + max(0.78 * len(columns), 1.8)
    rows_height = max(0.36 * len(rows), 0.16 * line_count(row_labels), 0.8)
    slanted = text_inches(longest_line(column_labels), 8)
    figure = new_figure(width + 0.2 * slanted, 0.7 + 0.65 * slanted + rows_height)
    axis = figure.subplots()
    axis.imshow(shares, cmap=colormaps["RdBu_r"], vmin=0.0, vmax=1.5, aspect="auto")
    for i, j in np.argwhere(np.isfinite(shares)):
        is_dark = abs(shares[i, j] - 0.75) > 0.5
        axis.text(
            j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize=8, color="white" if is_dark else "black"
        )
    axis.set_xticks(range(len(columns)), column_labels, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_yticks(range(len(rows)), row_labels, fontsize=8)
    axis.set_title("regret as a share of random's", fontsize=9)
    return figure


def plot_heatmap(tables: "Mapping[tuple[str, str], pd.DataFrame]") -> Figure:
    """Plot mean total regret over two hyper-parameters: a row of panels for each grid, a column for each world.

    Each panel has its own scale: darker is less regret. The least is framed.

    Parameters
    ----------
    tables : mapping from (grid, world) to pandas.DataFrame
        The tables of `larl.tables.heatmap`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Examples
    --------
    >>> import larl, pandas
    >>> table = pandas.DataFrame([[9.0, 8.0]], pandas.Index(["1.0"], name="alpha"), pandas.Index(["1", "2"], name="s"))
    >>> figure = larl.plots.plot_heatmap({("LARL", "k = 1"): table})
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['9.0', '8.0']
    """
    _check_tables("plot_heatmap", tables)
    grids, worlds = (list(dict.fromkeys(key[part] for key in tables)) for part in (0, 1))
    down, across = (max(table.shape[axis] for table in tables.values()) for axis in (0, 1))
    rows = max(longest_line([str(each) for each in table.index]) for table in tables.values())
    columns = max(longest_line([str(each) for each in table.columns]) for table in tables.values())
    cell = max(0.62, text_inches(columns, 8) + 0.1)
    panel = max(0.6 + text_inches(rows, 8) + cell * across, 2.2)
    text = "mean total regret over units and any further hyper-parameters; darker is less, the least of a panel framed"
    width = 0.6 + len(worlds) * panel
    labels = {key: wrap(_joined(key), int(9 * panel)) for key in tables}
    above = 0.16 * max(label.count("\n") + 1 for label in labels.values())
    caption_height = 0.15 * line_count([fit_text(text, width, 8)])
    figure = new_figure(width, 0.2 + caption_height + len(grids) * (0.7 + above + 0.5 * down))
    axes = figure.subplots(len(grids), len(worlds), squeeze=False)
    for i, grid in enumerate(grids):
        for j, world in enumerate(worlds):
            _draw_heatmap(axes[i, j], tables[grid, world])
            axes[i, j].set_title(labels[grid, world], fontsize=9)
            if j == 0:
                axes[i, j].set_ylabel(escape(str(tables[grid, world].index.name)), fontsize=9)
    add_caption(figure, text)
    return figure


def _check_tables(owner: str, tables: Any) -> None:
    is_mapping = (
        isinstance(tables, Mapping) and tables and all(isinstance(key, tuple) and len(key) == 2 for key in tables)
    )
    if not is_mapping or not all(hasattr(table, "columns") and hasattr(table, "index") for table in tables.values()):
        accepted = "a mapping from (grid, world) to pandas tables, as larl.tables makes"
        raise InvalidValue(owner, "tables", tables, accepted)


def _joined(key: tuple[str, str]) -> str:
    return " · ".join(part for part in key if part)


def _draw_heatmap(axis: "Axes", table: "pd.DataFrame") -> None:
    values = table.to_numpy()
    low, high = float(values.min()), float(values.max())
    axis.imshow(values, cmap=colormaps["Blues_r"], vmin=low, vmax=high + 0.25 * (high - low) or None, aspect="auto")
    for i, j in np.ndindex(values.shape):
        is_dark = values[i, j] <= low + 0.55 * (high - low)
        text = f"{values[i, j]:.1f}"
        axis.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if is_dark else "black")
    i, j = np.unravel_index(values.argmin(), values.shape)
    axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.0, clip_on=False))
    axis.set_xticks(range(values.shape[1]), [escape(str(name)) for name in table.columns], fontsize=8)
    axis.set_yticks(range(values.shape[0]), [escape(str(name)) for name in table.index], fontsize=8)
    axis.set_xlabel(escape(str(table.columns.name)), fontsize=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def plot_line(tables: "Mapping[tuple[str, str], pd.DataFrame]") -> Figure:
    """Plot mean total regret over one hyper-parameter: a panel for each world, a line for each grid.

    Bars are 95% intervals of the mean. The minimum of each line is marked.

    Parameters
    ----------
    tables : mapping from (grid, world) to pandas.DataFrame
        The tables of `larl.tables.line`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Examples
    --------
    >>> import larl, pandas
    >>> columns = {"mean": [9.0, 8.0], "low": [8.0, 7.0], "high": [10.0, 9.0]}
    >>> table = pandas.DataFrame(columns, index=pandas.Index([1, 2], name="s"))
    >>> figure = larl.plots.plot_line({("LARL", "k = 1"): table})
    >>> figure.axes[0].get_xlabel()
    's'
    """
    _check_tables("plot_line", tables)
    grids, worlds = (list(dict.fromkeys(key[part] for key in tables)) for part in (0, 1))
    parameter = str(next(iter(tables.values())).index.name)
    names = [wrap(grid) for grid in grids]
    legend_width = 0.9 + text_inches(longest_line(names), 8)
    text = "mean total regret over units and any further hyper-parameters; bars: 95% interval of the mean; ○ the least"
    width = legend_width + 2.9 * len(worlds)
    caption_height = 0.15 * line_count([fit_text(text, width, 8)])
    figure = new_figure(width, max(3.2, 0.5 + 0.17 * line_count(names)) + caption_height)
    axes = figure.subplots(1, len(worlds), squeeze=False)[0]
    for axis, world in zip(axes, worlds, strict=True):
        for index, (grid, label) in enumerate(zip(grids, names, strict=True)):
            table = tables[grid, world]
            is_numeric = all(isinstance(value, int | float) for value in table.index)
            x = np.array(table.index, dtype=float) if is_numeric else np.arange(len(table))
            mean = table["mean"].to_numpy()
            bars = np.abs(table[["low", "high"]].to_numpy().T - mean)
            style, best = line_style(index), int(mean.argmin())
            axis.errorbar(x, mean, None if np.isnan(bars).any() else bars, **style, marker=".", capsize=2, label=label)
            axis.plot(x[best], mean[best], "o", color=style["color"], markersize=8, fillstyle="none")
            if not is_numeric or len(table) <= 8:
                axis.set_xticks(x, [escape(str(value)) for value in table.index])
        axis.set_title(wrap(world, 36), fontsize=10)
        axis.set_xlabel(escape(parameter), fontsize=9)
        style_axes(axis)
    axes[0].set_ylabel("total regret", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    add_caption(figure, text)
    return figure
