"""Figures of a Result. The only module that draws."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from larl._check import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from larl.result import Result

# Okabe & Ito's colours, told apart by the colour-blind; line styles tell the ninth policy from the first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
STYLES = ("-", "--", "-.", ":")


def plot_regret(result: "Result", *, band: str = "sd", skip: int | str = 0, width: float | None = None) -> Figure:
    """Mean cumulative regret over time, one panel a world. `band`: "sd" (the paper's), "quartiles", "se" or "none"."""
    band = one_of("sd", "quartiles", "se", "none")("plot_regret", "band", band)
    panels = result.worlds or [""]
    figure = Figure(figsize=(width or 2.2 + 2.9 * len(panels), 3.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    curves = result.curves(skip)
    for axis, name in zip(axes, panels, strict=True):
        _curves(axis, result, curves.sel(world=name) if name else curves, band)
        axis.set_title(name, fontsize=10)
    axes[0].set_ylabel("cumulative regret")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    trials = result.data.sizes["trial"]
    words = {"sd": "± one standard deviation", "se": "± two standard errors", "quartiles": "middle half of trials"}
    note = f"mean of {trials:,} trials" + (f", band: {words[band]}" if band in words else "")
    figure.supxlabel(f"step   ({note})", fontsize=9)
    return figure


def _curves(axis: "Axes", result: "Result", curves: Any, band: str) -> None:
    time = curves["time"].values + 1
    trials = result.data.sizes["trial"]
    order = np.argsort(-curves["mean"].isel(time=-1).values)  # worst first, so that the legend reads as the lines do
    for place in order:
        name = result.policies[place]
        colour, style = COLOURS[place % len(COLOURS)], STYLES[(place // len(COLOURS)) % len(STYLES)]
        one = curves.sel(policy=name)
        mean = one["mean"].values
        axis.plot(time, mean, color=colour, linestyle=style, linewidth=1.5, label=name)
        if band == "quartiles":
            low, high = one["low"].values, one["high"].values
        else:
            half = one["sd"].values * {"sd": 1.0, "se": 2.0 / np.sqrt(trials), "none": 0.0}[band]
            low, high = mean - half, mean + half
        if band != "none":
            axis.fill_between(time, low, high, color=colour, alpha=min(0.12, 0.5 / len(order)), linewidth=0)
    axis.set_xlim(time[0], time[-1])
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


def plot_wins(result: "Result", *, skip: int | str = 0, width: float | None = None) -> Figure:
    """How often the row's policy beats the column's, one panel a world; cells give the rate and its 95% interval."""
    panels, names = result.worlds or [""], result.policies
    side = 1.1 + 0.62 * len(names)
    figure = Figure(figsize=(width or side * len(panels) + 0.6, side + 0.2), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    wins: Any = result.wins(skip)
    for axis, panel in zip(axes, panels, strict=True):
        one = wins.sel(world=panel) if panel else wins
        one = one.transpose("policy", "versus")
        axis.imshow(one["rate"].values, cmap=colormaps["RdBu"], vmin=0.0, vmax=1.0)
        for i, j in np.argwhere(np.isfinite(one["rate"].values)):
            rate, low, high = (float(one[part].values[i, j]) for part in ("rate", "low", "high"))
            dark = abs(rate - 0.5) > 0.3
            text = f"{100 * rate:.0f}%\n{100 * low:.0f}–{100 * high:.0f}"
            axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axis.set_yticks(range(len(names)), names if axis is axes[0] else [], fontsize=8)
        axis.set_title(panel, fontsize=10)
    figure.supxlabel("row beats column: share of trials with less total regret, 95% interval below", fontsize=8)
    return figure
