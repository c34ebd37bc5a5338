"""Figures of a Result; diagnosis/figures.py and paper/figures.py draw what needs more than one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from larl._check import one_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from larl.result import Result

# Colours that the colour-blind tell apart (most of them Okabe & Ito's); line styles tell the eleventh from the first.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#882255", "#999999",
)  # fmt: skip
STYLES = ("-", "--", "-.", ":")


def plot_regret(
    result: "Result", *, band: str = "sd", skip: int | str = 0, width: float | None = None,
    floors: Mapping[str, float] | None = None, palette: Sequence[str] = (), note: str = "", column: bool = False,
    apart: "Result | None" = None,
) -> Figure:  # fmt: skip
    """Mean cumulative regret over time, one panel a world. `band`: "sd" (the paper's), "quartiles", "se" or "none".

    `floors` gives a world's least possible regret a step in the long run, drawn as a dotted line. Policies in
    `palette` have the colour of their place there, so that figures agree. `note` is added below. `column`: panels one
    below another, for the column of a paper. Policies of `apart`, a Result in the same worlds, are drawn in black
    without a band.
    """
    band = one_of("sd", "quartiles", "se", "none")("plot_regret", "band", band)
    panels = result.worlds or [""]
    tall = max(3.4, 0.3 + 0.17 * len(result.policies))  # as high as its legend
    size = (width or 3.4, 2.1 * len(panels) + 1.2) if column else (width or 2.2 + 2.9 * len(panels), tall)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(*((len(panels), 1) if column else (1, len(panels))), squeeze=False).ravel()
    curves = result.curves(skip).merge(result.quartiles(skip)) if band == "quartiles" else result.curves(skip)
    for axis, name in zip(axes, panels, strict=True):
        _curves(axis, result, curves.sel(world=name) if name else curves, band, list(palette) or result.policies)
        if apart is not None:
            for number, policy in enumerate(apart.policies):
                mean = apart.curves(skip)["mean"].sel(policy=policy, world=name)
                dashes = (0, (5, 1 + 2 * number))
                axis.plot(mean["time"] + 1, mean, color="black", linestyle=dashes, linewidth=2.0, label=_plain(policy))
        if floors and name in floors:
            first = int(result.data["k"].sel(world=name)) if skip == "k" else int(skip)
            time = np.arange(first, int(curves["time"][-1]) + 1)
            axis.plot(
                time + 1, floors[name] * (time - first), color="0.35", linestyle=":", linewidth=1.2, label="floor"
            )
        axis.set_title(_plain(name), fontsize=10)
    for axis in axes if column else axes[:1]:
        axis.set_ylabel("cumulative regret", fontsize=9)
    place = {"loc": "outside lower center", "ncols": 2} if column else {"loc": "outside right center"}
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7 if column else 8, frameon=False, **place)
    trials = result.data.sizes["trial"]
    words = {"sd": "± one standard deviation", "se": "± two standard errors", "quartiles": "middle half of trials"}
    parts = [
        f"mean of {trials:,} {'cohorts' if result.units else 'trials'}",
        f"band: {words[band]}" if band in words else "",
        note,
    ]
    text = ("\n" if column else ", ").join(part for part in parts if part)
    if column:
        axes[-1].set_xlabel(f"step\n{text}", fontsize=8)
    else:
        figure.supxlabel(f"step   ({text})", fontsize=9)
    return figure


def _curves(axis: "Axes", result: "Result", curves: Any, band: str, palette: list[str]) -> None:
    time = curves["time"].values + 1
    trials = result.data.sizes["trial"]
    order = np.argsort(-curves["mean"].isel(time=-1).values)  # worst first, so that the legend reads as the lines do
    for place in order:
        name = result.policies[place]
        at = palette.index(name)
        colour, style = COLOURS[at % len(COLOURS)], STYLES[(at // len(COLOURS)) % len(STYLES)]
        one = curves.sel(policy=name)
        mean = one["mean"].values
        axis.plot(time, mean, color=colour, linestyle=style, linewidth=1.5, label=_plain(name))
        if band == "quartiles":
            low, high = one["low"].values, one["high"].values
        else:
            half = one["sd"].values * {"sd": 1.0, "se": 2.0 / np.sqrt(trials), "none": 0.0}[band]
            low, high = mean - half, mean + half
        if band != "none":
            axis.fill_between(time, low, high, color=colour, alpha=min(0.12, 0.5 / len(order)), linewidth=0)
    axis.set_xlim(time[0], max(time[-1], time[0] + 1))
    axis.set_ylim(bottom=0)
    _tidy(axis)


def _plain(name: str) -> str:
    """A name as it is written: a dollar sign begins no mathematics, and a leading underscore hides nothing."""
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def plot_wins(result: "Result", *, skip: int | str = 0, width: float | None = None) -> Figure:
    """How often the row's policy beats the column's, one panel a world; cells give the rate and its 95% interval."""
    panels, names = result.worlds or [""], result.policies
    labels = [_plain(name) for name in names]
    side = 1.1 + 0.62 * len(names)
    across = len(panels) if len(names) <= 5 else 1  # many policies need the width of the page: panels one below another
    down = -(-len(panels) // across)
    margin = max(0.0, 0.055 * max(map(len, names)) - 0.8)  # what a long name needs beyond the usual
    figure = Figure(figsize=(width or side * across + 0.6 + margin, side * down + 0.2), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
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
        axis.set_xticks(range(len(names)), labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axis.set_yticks(range(len(names)), labels if axis in axes[::across] else [], fontsize=8)
        axis.set_title(_plain(panel), fontsize=10)
    figure.supxlabel("row beats column: share of trials with less total regret, 95% interval below", fontsize=8)
    return figure


def plot_lookback(result: "Result", orders: Sequence[int]) -> Figure:
    """Mean total regret of LARL over s, one line a world, bars of two standard errors; the least is marked."""
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axis = figure.subplots()
    total = result.total("k")
    s = [int(name.removeprefix("s = ")) for name in result.policies]
    for place, (world, k) in enumerate(zip(result.worlds, orders, strict=True)):
        one = total.sel(world=world)
        mean, error = one.mean("trial").values, one.std("trial", ddof=1).values / np.sqrt(one.sizes["trial"])
        axis.errorbar(s, mean, 2 * error, color=COLOURS[place], linestyle=STYLES[place], marker=".", label=f"k = {k}")
        axis.plot(s[mean.argmin()], mean.min(), "o", color=COLOURS[place], markersize=8, fillstyle="none")
    axis.set_xlabel("s, the steps LARL looks back (○ the best)")
    axis.set_ylabel("total regret")
    axis.set_ylim(bottom=0)
    axis.set_xticks(range(0, max(s) + 1, 5))
    _tidy(axis)
    axis.legend(fontsize=8, frameon=False)
    return figure


def plot_growth(results: "Mapping[int, Result]") -> Figure:
    """Mean total regret over the horizon on logarithmic axes, one panel a world, bars of two standard errors."""
    horizons = sorted(results)
    some = results[horizons[0]]
    figure = Figure(figsize=(2.2 + 2.3 * len(some.worlds), 3.2), layout="constrained")
    axes = figure.subplots(1, len(some.worlds), sharey=True)
    for axis, world in zip(axes, some.worlds, strict=True):
        for place, policy in enumerate(some.policies):
            sample = [results[t].total().sel(world=world, policy=policy).values for t in horizons]
            mean = np.array([each.mean() for each in sample])
            error = np.array([each.std(ddof=1) / np.sqrt(each.size) for each in sample])
            axis.errorbar(
                horizons, mean, 2 * error, color=COLOURS[place], linestyle=STYLES[place], marker=".", label=policy
            )
        axis.set(xscale="log", yscale="log", xlabel="T")
        axis.set_title(world, fontsize=10)
        _tidy(axis)
    axes[0].set_ylabel("total regret")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return figure


def plot_closed(rows: Sequence[str], policies: Sequence[str], found: Sequence[Sequence[tuple[float, float]]]) -> Figure:
    """Shares closed in percent, a row for each world, a mark for each policy, bars of two standard errors."""
    figure = Figure(figsize=(8.0, 1.0 + 0.36 * len(rows)), layout="constrained")
    axis = figure.subplots()
    for place, policy in enumerate(policies):
        y = np.arange(len(rows)) + 0.16 * (place - (len(policies) - 1) / 2)
        share, error = np.array([row[place] for row in found]).T
        axis.errorbar(
            share, y, xerr=2 * error, fmt="os^Dv"[place % 5], markersize=4.5, color=COLOURS[place % len(COLOURS)],
            linewidth=1.0, label=policy,
        )  # fmt: skip
    axis.axvline(0, color="0.5", linewidth=0.8)
    axis.axvline(100, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(rows)), [_plain(row) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("share closed of the gap LARL (BIC) → Kalman, percent (bars: two standard errors)", fontsize=8)
    _tidy(axis)
    figure.legend(loc="outside upper center", ncols=len(policies), fontsize=8, frameon=False)
    return figure


def plot_shares(rows: Sequence[str], columns: Sequence[str], shares: Any) -> Figure:
    """A table of regret as a share of random's, coloured: blue is less, red is more; empty where there is none."""
    figure = Figure(figsize=(1.9 + 0.78 * len(columns), 0.9 + 0.36 * len(rows)), layout="constrained")
    axis = figure.subplots()
    axis.imshow(shares, cmap=colormaps["RdBu_r"], vmin=0.0, vmax=1.5, aspect="auto")
    for i, j in np.argwhere(np.isfinite(shares)):
        dark = abs(shares[i, j] - 0.75) > 0.5
        axis.text(j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axis.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_title("regret as a share of random's", fontsize=9)
    return figure


def plot_heat(squares: "Mapping[tuple[str, str], pd.DataFrame]") -> Figure:
    """Mean total regret over two hyper-parameters: (grid, world) → square, a row of panels for each grid.

    Each panel has its own scale: darker is less regret. The least is framed.
    """
    titles, places = (list(dict.fromkeys(key[part] for key in squares)) for part in (0, 1))
    down, across = (max(square.shape[axis] for square in squares.values()) for axis in (0, 1))
    size = (0.9 + len(places) * max(0.9 + 0.62 * across, 2.2), 0.6 + len(titles) * (1.0 + 0.5 * down))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(titles), len(places), squeeze=False)
    for i, title in enumerate(titles):
        for j, place in enumerate(places):
            _heat(axes[i, j], squares[title, place])
            axes[i, j].set_title(_plain(" · ".join(part for part in (title, place) if part)), fontsize=9)
            if j == 0:
                axes[i, j].set_ylabel(_plain(str(squares[title, place].index.name)), fontsize=9)
    text = "mean total regret over units and any further hyper-parameters; darker is less, the least of a panel framed"
    figure.supxlabel(text if size[0] > 7 else text.replace("; ", "\n"), fontsize=8)
    return figure


def _heat(axis: "Axes", square: "pd.DataFrame") -> None:
    values = square.to_numpy()
    low, high = float(values.min()), float(values.max())
    axis.imshow(values, cmap=colormaps["Blues_r"], vmin=low, vmax=high + 0.25 * (high - low) or None, aspect="auto")
    for i, j in np.ndindex(values.shape):
        dark = values[i, j] <= low + 0.55 * (high - low)
        axis.text(
            j, i, f"{values[i, j]:.1f}", ha="center", va="center", fontsize=7.5, color="white" if dark else "black"
        )
    i, j = np.unravel_index(values.argmin(), values.shape)
    axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.0, clip_on=False))
    axis.set_xticks(range(values.shape[1]), [_plain(str(name)) for name in square.columns], fontsize=8)
    axis.set_yticks(range(values.shape[0]), [_plain(str(name)) for name in square.index], fontsize=8)
    axis.set_xlabel(_plain(str(square.columns.name)), fontsize=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _tidy(axis: "Axes") -> None:
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
