"""Public figures of results. Figures of reports are in `larl.reports`, those of a diagnosis in `larl.diagnosis`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from larl._core.validation import InvalidValue, mapping, number, one_of, optional
from larl.simulation.figure import (
    add_caption,
    check_result,
    escape,
    fit_text,
    line_count,
    line_style,
    longest_line,
    new_figure,
    select_world,
    style_axes,
    text_inches,
    wrap,
)
from larl.simulation.plot_tables import plot_gap_closed as plot_gap_closed
from larl.simulation.plot_tables import plot_heatmap as plot_heatmap
from larl.simulation.plot_tables import plot_line as plot_line
from larl.simulation.plot_tables import plot_shares as plot_shares
from larl.simulation.plot_totals import plot_growth as plot_growth
from larl.simulation.plot_totals import plot_lookback as plot_lookback

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from larl.simulation.result import Result

BANDS = {"sd": "± one standard deviation", "se": "± two standard errors", "quartiles": "middle half of trials"}


def plot_regret(
    result: "Result",
    *,
    band: str = "sd",
    skip: int | str = 0,
    width: float | None = None,
    regret_floors: Mapping[str, float] | None = None,
    palette: Sequence[str] = (),
    note: str = "",
    stacked: bool = False,
    overlay: "Result | None" = None,
) -> Figure:
    """Plot mean cumulative regret over time, with one panel for each world.

    Parameters
    ----------
    result : Result
        The result of `larl.compare`.
    band : {"sd", "quartiles", "se", "none"}, default "sd"
        Band around the mean: one standard deviation (as in the paper), the middle half of the trials, two standard
        errors, or no band.
    skip : int, >= 0, or "k", default 0
        Number of first steps that do not count; "k" skips the first k steps of each world.
    width : float, > 0, optional
        Width of the figure in inches.
    regret_floors : mapping from str to float, optional
        For each world's name, the long-run lower limit of regret in each step, drawn as a dotted line; see
        `larl.theory.regret_floor`.
    palette : sequence of str, optional
        Names of policies in the order of their colours, so that several figures use the same colours.
    note : str, optional
        Text below the figure.
    stacked : bool, default False
        Whether panels are one below another, for the column of a paper.
    overlay : Result, optional
        A result in the same worlds, whose policies are drawn in black without a band.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Raises
    ------
    InvalidValue
        An argument is not accepted.

    Examples
    --------
    >>> import larl
    >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
    >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
    >>> figure = larl.plots.plot_regret(result, band="se")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['UCB', 'LARL']
    """
    check_result("plot_regret", result)
    band = one_of("sd", "quartiles", "se", "none")("plot_regret", "band", band)
    width = optional(number(above=0.0))("plot_regret", "width", width)
    floors = {} if regret_floors is None else mapping("plot_regret", "regret_floors", regret_floors)
    colours = _check_palette(palette, result.policies)
    panels = result.worlds or [""]
    names = [wrap(name) for name in [*result.policies, *(overlay.policies if overlay else [])]]
    height = max(3.4, 0.5 + 0.17 * line_count(names))  # at least the height of the legend
    legend_width = max(2.2, 0.9 + text_inches(longest_line(names), 8))
    size = (width or 3.4, 2.1 * len(panels) + 1.2) if stacked else (width or legend_width + 2.9 * len(panels), height)
    columns = 2 if 2 * text_inches(longest_line(names) + 8, 7) < size[0] else 1
    if stacked:
        size = (size[0], size[1] + 0.14 * (line_count(names) / columns - 3 if line_count(names) > 6 else 0))
    figure = new_figure(*size)
    axes = figure.subplots(*((len(panels), 1) if stacked else (1, len(panels))), squeeze=False).ravel()
    curves = result.curves(skip).merge(result.quartiles(skip)) if band == "quartiles" else result.curves(skip)
    for axis, name in zip(axes, panels, strict=True):
        _draw_curves(axis, result, select_world(curves, name), band, colours)
        if overlay is not None:
            for index, policy in enumerate(overlay.policies):
                mean = select_world(overlay.curves(skip)["mean"], name).sel(policy=policy)
                dashes = (0, (5, 1 + 2 * index))
                axis.plot(mean["time"] + 1, mean, color="black", linestyle=dashes, linewidth=2.0, label=wrap(policy))
        if (name or "world") in floors:
            first = int(select_world(result.data["k"], name)) if skip == "k" else int(skip)
            time = np.arange(first, int(curves["time"][-1]) + 1)
            slope = number()("plot_regret", f"regret_floors[{name!r}]", floors[name or "world"])
            axis.plot(
                time + 1, slope * (time - first), color="0.35", linestyle=":", linewidth=1.2, label="regret floor"
            )
        axis.set_title(wrap(name, 36), fontsize=10)
    for axis in axes if stacked else axes[:1]:
        axis.set_ylabel("cumulative regret", fontsize=9)
    legend: dict[str, Any] = (
        {"loc": "outside lower center", "ncols": columns} if stacked else {"loc": "outside right center"}
    )
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7 if stacked else 8, frameon=False, **legend)
    trials = result.data.sizes["trial"]
    parts = [
        f"mean of {trials:,} {'cohorts' if result.units else 'trials'}",
        f"band: {BANDS[band]}" if band in BANDS else "",
    ]
    text = ("\n" if stacked else ", ").join(part for part in parts if part)
    if stacked:
        text = f"step\n{text}\n{note}".rstrip()
        axes[-1].set_xlabel(escape(fit_text(text, size[0] - 0.6, 8)), fontsize=8)
    else:
        add_caption(figure, f"step   ({text})\n{note}".rstrip(), 9)
    return figure


def _check_palette(palette: Sequence[str], policies: list[str]) -> list[str]:
    if isinstance(palette, str) or not isinstance(palette, Sequence):
        raise InvalidValue("plot_regret", "palette", palette, "a sequence of names of policies")
    for name in policies if palette else []:
        if name not in palette:
            raise InvalidValue("plot_regret", "palette", palette, f"names that include every policy, also {name!r}")
    return list(palette) or policies


def _draw_curves(axis: "Axes", result: "Result", curves: Any, band: str, palette: list[str]) -> None:
    time = curves["time"].values + 1
    trials = result.data.sizes["trial"]
    order = np.argsort(-curves["mean"].isel(time=-1).values)  # largest first: the legend has the order of the lines
    for index in order:
        name = result.policies[index]
        style = line_style(palette.index(name))
        curve = curves.sel(policy=name)
        mean = curve["mean"].values
        axis.plot(time, mean, **style, linewidth=1.5, label=wrap(name))
        if band == "quartiles":
            low, high = curve["low"].values, curve["high"].values
        else:
            half = curve["sd"].values * {"sd": 1.0, "se": 2.0 / np.sqrt(trials), "none": 0.0}[band]
            low, high = mean - half, mean + half
        if band != "none":
            axis.fill_between(time, low, high, color=style["color"], alpha=min(0.12, 0.5 / len(order)), linewidth=0)
    axis.set_xlim(time[0], max(time[-1], time[0] + 1))
    axis.set_ylim(bottom=0)
    style_axes(axis)


def plot_wins(result: "Result", *, skip: int | str = 0, width: float | None = None, note: str = "") -> Figure:
    """Plot pairwise win rates as a heat map, with one panel for each world.

    A cell shows the share of trials in which the row's policy has less total regret than the column's, and its 95%
    interval.

    Parameters
    ----------
    result : Result
        The result of `larl.compare`.
    skip : int, >= 0, or "k", default 0
        Number of first steps that do not count; "k" skips the first k steps of each world.
    width : float, > 0, optional
        Width of the figure in inches.
    note : str, optional
        Text below the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Examples
    --------
    >>> import larl
    >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
    >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
    >>> figure = larl.plots.plot_wins(result)
    >>> print(figure.axes[0].texts[1].get_text())
    100%
    93–100
    """
    check_result("plot_wins", result)
    width = optional(number(above=0.0))("plot_wins", "width", width)
    panels, count = result.worlds or [""], len(result.policies)
    rows = columns = [wrap(name) for name in result.policies]
    if any("\n" in label for label in rows):  # slanted names of several lines would overlap
        rows = [wrap(f"{number}: {name}") for number, name in enumerate(result.policies, 1)]
        columns = [str(number) for number in range(1, count + 1)]
    row_width, column_height = text_inches(longest_line(rows), 8), text_inches(longest_line(columns), 8)
    side = 0.4 + 0.62 * count
    across = len(panels) if count <= 5 else 1  # a panel of many policies needs the full width
    down = -(-len(panels) // across)
    titles = [wrap(name, max(14, int(9 * side))) for name in panels]
    panel_width = max(side, text_inches(longest_line(titles), 10) + 0.1) + 0.15
    slanted_width = max(0.0, 0.77 * column_height - 0.3) * (across - 1)  # slanted names reach into the next panel
    full_width = max(width or 0.35 + row_width + panel_width * across + slanted_width, width or 3.0)
    below = 0.5 + 0.65 * column_height
    text = "row beats column: share of trials with less total regret, 95% interval below"
    text = fit_text(f"{text}; {note}" if note else text, full_width - 0.2, 8)
    above = 0.16 * max(map(line_count, ([title] for title in titles)))
    figure = new_figure(full_width, (side + below + above) * down + 0.15 * line_count([text]))
    axes = figure.subplots(down, across, squeeze=False).ravel()
    wins: Any = result.wins(skip)
    for axis, panel, title in zip(axes, panels, titles, strict=True):
        table = select_world(wins, panel).transpose("policy", "versus")
        axis.imshow(table["rate"].values, cmap=colormaps["RdBu"], vmin=0.0, vmax=1.0, aspect="auto")
        for i, j in np.ndindex(count, count):
            rate, low, high = (float(table[part].values[i, j]) for part in ("rate", "low", "high"))
            cell = f"{100 * rate:.0f}%\n{100 * low:.0f}–{100 * high:.0f}" if np.isfinite(rate) else "–"
            is_dark = abs(rate - 0.5) > 0.3
            axis.text(j, i, cell, ha="center", va="center", fontsize=6.5, color="white" if is_dark else "black")
        slant: Any = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if columns is rows else {}
        axis.set_xticks(range(count), columns, fontsize=8, **slant)
        axis.set_yticks(range(count), rows if axis in axes[::across] else [], fontsize=8)
        axis.set_title(title, fontsize=10)
    add_caption(figure, text)
    return figure
