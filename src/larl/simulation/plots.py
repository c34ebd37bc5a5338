"""Figures of a Result; diagnosis/figures.py and paper/figures.py draw what needs more than one."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from larl._core.validation import InvalidValue, mapping, number, one_of, optional
from larl.simulation.figure import caption, fill, inches, line_count, longest, look, new_figure, plain, tidy, wrapped
from larl.simulation.plot_tables import plot_closed as plot_closed
from larl.simulation.plot_tables import plot_heat as plot_heat
from larl.simulation.plot_tables import plot_line as plot_line
from larl.simulation.plot_tables import plot_shares as plot_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from larl.simulation.result import Result


def plot_regret(
    result: "Result",
    *,
    band: str = "sd",
    skip: int | str = 0,
    width: float | None = None,
    floors: Mapping[str, float] | None = None,
    palette: Sequence[str] = (),
    note: str = "",
    column: bool = False,
    apart: "Result | None" = None,
) -> Figure:
    """Mean cumulative regret over time, one panel a world. `band`: "sd" (the paper's), "quartiles", "se" or "none".

    `floors` gives a world's least possible regret a step in the long run, drawn as a dotted line. Policies in
    `palette` have the colour of their place there, so that figures agree. `note` is added below. `column`: panels one
    below another, for the column of a paper. Policies of `apart`, a Result in the same worlds, are drawn in black
    without a band.
    """
    _check_result("plot_regret", result)
    band = one_of("sd", "quartiles", "se", "none")("plot_regret", "band", band)
    width = optional(number(above=0.0))("plot_regret", "width", width)
    floors = {} if floors is None else mapping("plot_regret", "floors", floors)
    colours = _palette(palette, result.policies)
    panels = result.worlds or [""]
    names = [wrapped(name) for name in [*result.policies, *(apart.policies if apart else [])]]
    tall = max(3.4, 0.5 + 0.17 * line_count(names))  # as high as its legend
    beside = max(2.2, 0.9 + inches(longest(names), 8))
    size = (width or 3.4, 2.1 * len(panels) + 1.2) if column else (width or beside + 2.9 * len(panels), tall)
    columns = 2 if 2 * inches(longest(names) + 8, 7) < size[0] else 1
    if column:
        size = (size[0], size[1] + 0.14 * (line_count(names) / columns - 3 if line_count(names) > 6 else 0))
    figure = new_figure(*size)
    axes = figure.subplots(*((len(panels), 1) if column else (1, len(panels))), squeeze=False).ravel()
    curves = result.curves(skip).merge(result.quartiles(skip)) if band == "quartiles" else result.curves(skip)
    for axis, name in zip(axes, panels, strict=True):
        _curves(axis, result, _of_world(curves, name), band, colours)
        if apart is not None:
            for place, policy in enumerate(apart.policies):
                mean = _of_world(apart.curves(skip)["mean"], name).sel(policy=policy)
                dashes = (0, (5, 1 + 2 * place))
                axis.plot(mean["time"] + 1, mean, color="black", linestyle=dashes, linewidth=2.0, label=wrapped(policy))
        if (name or "world") in floors:
            first = int(_of_world(result.data["k"], name)) if skip == "k" else int(skip)
            time = np.arange(first, int(curves["time"][-1]) + 1)
            least = number()("plot_regret", f"floors[{name!r}]", floors[name or "world"]) * (time - first)
            axis.plot(time + 1, least, color="0.35", linestyle=":", linewidth=1.2, label="floor")
        axis.set_title(wrapped(name, 36), fontsize=10)
    for axis in axes if column else axes[:1]:
        axis.set_ylabel("cumulative regret", fontsize=9)
    at: dict[str, Any] = (
        {"loc": "outside lower center", "ncols": columns} if column else {"loc": "outside right center"}
    )
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7 if column else 8, frameon=False, **at)
    trials = result.data.sizes["trial"]
    words = {"sd": "± one standard deviation", "se": "± two standard errors", "quartiles": "middle half of trials"}
    parts = [
        f"mean of {trials:,} {'cohorts' if result.units else 'trials'}",
        f"band: {words[band]}" if band in words else "",
    ]
    text = ("\n" if column else ", ").join(part for part in parts if part)
    if column:
        text = f"step\n{text}\n{note}".rstrip()
        axes[-1].set_xlabel(plain(fill(text, size[0] - 0.6, 8)), fontsize=8)
    else:
        caption(figure, f"step   ({text})\n{note}".rstrip(), 9)
    return figure


def _check_result(owner: str, result: Any) -> None:
    if not hasattr(result, "curves") or not hasattr(result, "data"):
        raise InvalidValue(owner, "result", result, "a larl.Result, as larl.compare returns")


def _of_world(values: Any, name: str) -> Any:
    return values.sel(world=name) if name else values


def _palette(palette: Sequence[str], policies: list[str]) -> list[str]:
    if isinstance(palette, str) or not isinstance(palette, Sequence):
        raise InvalidValue("plot_regret", "palette", palette, "a sequence of names of policies")
    for name in policies if palette else []:
        if name not in palette:
            raise InvalidValue("plot_regret", "palette", palette, f"names that include every policy, also {name!r}")
    return list(palette) or policies


def _curves(axis: "Axes", result: "Result", curves: Any, band: str, palette: list[str]) -> None:
    time = curves["time"].values + 1
    trials = result.data.sizes["trial"]
    order = np.argsort(-curves["mean"].isel(time=-1).values)  # worst first, so that the legend reads as the lines do
    for place in order:
        name = result.policies[place]
        style = look(palette.index(name))
        one = curves.sel(policy=name)
        mean = one["mean"].values
        axis.plot(time, mean, **style, linewidth=1.5, label=wrapped(name))
        if band == "quartiles":
            low, high = one["low"].values, one["high"].values
        else:
            half = one["sd"].values * {"sd": 1.0, "se": 2.0 / np.sqrt(trials), "none": 0.0}[band]
            low, high = mean - half, mean + half
        if band != "none":
            axis.fill_between(time, low, high, color=style["color"], alpha=min(0.12, 0.5 / len(order)), linewidth=0)
    axis.set_xlim(time[0], max(time[-1], time[0] + 1))
    axis.set_ylim(bottom=0)
    tidy(axis)


def plot_wins(result: "Result", *, skip: int | str = 0, width: float | None = None, note: str = "") -> Figure:
    """How often the row's policy beats the column's, one panel a world; cells give the rate and its 95% interval.

    `note` is added below.
    """
    _check_result("plot_wins", result)
    width = optional(number(above=0.0))("plot_wins", "width", width)
    panels, count = result.worlds or [""], len(result.policies)
    rows = columns = [wrapped(name) for name in result.policies]
    if any("\n" in label for label in rows):  # slanted names of several lines would overlap
        rows = [wrapped(f"{number}: {name}") for number, name in enumerate(result.policies, 1)]
        columns = [str(number) for number in range(1, count + 1)]
    left, slanted = inches(longest(rows), 8), inches(longest(columns), 8)
    side = 0.4 + 0.62 * count
    across = len(panels) if count <= 5 else 1  # many policies need the width of the page: panels one below another
    down = -(-len(panels) // across)
    titles = [wrapped(name, max(14, int(9 * side))) for name in panels]
    each = max(side, inches(longest(titles), 10) + 0.1) + 0.15
    beside = max(0.0, 0.77 * slanted - 0.3) * (across - 1)  # what slanted names take to the left of further panels
    wide = max(width or 0.35 + left + each * across + beside, width or 3.0)
    below = 0.5 + 0.65 * slanted
    text = "row beats column: share of trials with less total regret, 95% interval below"
    text = fill(f"{text}; {note}" if note else text, wide - 0.2, 8)
    above = 0.16 * max(map(line_count, ([title] for title in titles)))
    figure = new_figure(wide, (side + below + above) * down + 0.15 * line_count([text]))
    axes = figure.subplots(down, across, squeeze=False).ravel()
    wins: Any = result.wins(skip)
    for axis, panel, title in zip(axes, panels, titles, strict=True):
        one = _of_world(wins, panel).transpose("policy", "versus")
        axis.imshow(one["rate"].values, cmap=colormaps["RdBu"], vmin=0.0, vmax=1.0, aspect="auto")
        for i, j in np.ndindex(count, count):
            rate, low, high = (float(one[part].values[i, j]) for part in ("rate", "low", "high"))
            cell = f"{100 * rate:.0f}%\n{100 * low:.0f}–{100 * high:.0f}" if np.isfinite(rate) else "–"
            dark = abs(rate - 0.5) > 0.3
            axis.text(j, i, cell, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        slant: Any = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if columns is rows else {}
        axis.set_xticks(range(count), columns, fontsize=8, **slant)
        axis.set_yticks(range(count), rows if axis in axes[::across] else [], fontsize=8)
        axis.set_title(title, fontsize=10)
    caption(figure, text)
    return figure


def plot_lookback(result: "Result", orders: Sequence[int] | None = None, *, skip: int | str = "k") -> Figure:
    """Mean total regret over s, the steps that a policy looks back, with bars of two standard errors.

    s is that of each policy's spec, whatever the policy is called. There is a line for each world, and for each set of
    the other settings if there are several; its least is marked. Policies without s are drawn as dotted lines.
    `orders` labels the worlds by their k.
    """
    _check_result("plot_lookback", result)
    panels = result.worlds or [""]
    if orders is not None and len(orders) != len(panels):
        raise InvalidValue("plot_lookback", "orders", orders, f"{len(panels)} numbers, one for each world")
    mean, error = _mean_and_error(result.total(skip))
    figure = new_figure(5.2, 3.4)
    axis = figure.subplots()
    used, place = 0, 0
    for number_, world in enumerate(panels):
        lines, others = _by_lookback(result, world)
        title = f"k = {orders[number_]}" if orders is not None else world
        for group, points in lines.items():
            label = " · ".join(part for part in (title, group if len(lines) > 1 else "") if part)
            s, names = list(points), list(points.values())
            y, half = (_of_world(each, world).sel(policy=names).values for each in (mean, 2 * error))
            style = look(place) | {"linestyle": ("-", "--", "-.", ":")[place % 4]}
            axis.errorbar(s, y, half, **style, marker=".", label=wrapped(label, 40) or None)
            axis.plot(s[y.argmin()], y.min(), "o", color=style["color"], markersize=8, fillstyle="none")
            place, used = place + 1, max(used, *s)
        for name in others:
            y = float(_of_world(mean, world).sel(policy=name))
            label = " · ".join(part for part in (title, name) if part)
            axis.axhline(y, color=look(place)["color"], linestyle=":", linewidth=1.2, label=wrapped(label, 40))
            place += 1
    axis.set_xlabel("s, the steps that the policy looks back (○ the best)", fontsize=9)
    axis.set_ylabel("total regret", fontsize=9)
    axis.set_ylim(bottom=0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axis)
    handles, labels = axis.get_legend_handles_labels()
    if labels:
        figure.set_figwidth(3.6 + max(1.6, 0.6 + inches(longest(labels), 8)))
        figure.set_figheight(max(3.4, 0.5 + 0.17 * line_count(labels)))
        figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside right center")
    return figure


def _by_lookback(result: "Result", world: str) -> tuple[dict[str, dict[int, str]], list[str]]:
    """The other settings → s → the policy's name, in order of s; and the policies without s."""
    specs: dict[str, Any] = json.loads(result.data.attrs["policies"])
    mine = specs[world] if world else next(iter(specs.values()))
    lines: dict[str, dict[int, str]] = {}
    others = []
    for name in result.policies:
        spec = dict(mine[name])
        s, kind = spec.pop("s", None), spec.pop("policy")
        if s is None:
            others.append(name)
            continue
        group = ", ".join([kind, *(f"{key}={value}" for key, value in spec.items())])
        if s in lines.setdefault(group, {}):
            accepted = f"one policy for each s: {lines[group][s]!r} has the same settings"
            raise InvalidValue("plot_lookback", "policy", name, accepted)
        lines[group][s] = name
    if not lines:
        raise InvalidValue("plot_lookback", "policies", result.policies, "at least one policy that has s: larl.LARL")
    return {_differing(group, list(lines)): dict(sorted(line.items())) for group, line in lines.items()}, others


def _differing(group: str, groups: list[str]) -> str:
    """Of a group's settings those in which the groups differ."""
    common = set.intersection(*(set(each.split(", ")) for each in groups))
    return ", ".join(part for part in group.split(", ") if part not in common) or group


def _mean_and_error(total: Any) -> tuple[Any, Any]:
    """Mean over trials, and its standard error (0 for a single trial)."""
    trials = total.sizes["trial"]
    return total.mean("trial"), total.std("trial", ddof=min(1, trials - 1)) / np.sqrt(trials)


def plot_growth(results: "Mapping[int, Result]") -> Figure:
    """Mean total regret over the horizon on logarithmic axes, one panel a world, bars of two standard errors."""
    if not isinstance(results, Mapping) or not results:
        raise InvalidValue("plot_growth", "results", results, "a mapping from horizons to results")
    for horizon, one in results.items():
        _check_result(f"plot_growth: results[{horizon!r}]", one)
    horizons = sorted(results)
    some = results[horizons[0]]
    panels, names = some.worlds or [""], [wrapped(name) for name in some.policies]
    beside = max(2.2, 0.9 + inches(longest(names), 8))
    figure = new_figure(beside + 2.3 * len(panels), max(3.2, 0.5 + 0.17 * line_count(names)))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, world in zip(axes, panels, strict=True):
        for place, (policy, label) in enumerate(zip(some.policies, names, strict=True)):
            found = [_mean_and_error(_of_world(results[t].total(), world).sel(policy=policy)) for t in horizons]
            mean, error = (np.array([float(each[part]) for each in found]) for part in (0, 1))
            style = look(place) | {"linestyle": ("-", "--", "-.", ":")[place % 4]}
            axis.errorbar(horizons, mean, 2 * error, **style, marker=".", label=label)
        axis.set(xscale="log", yscale="log", xlabel="T")
        axis.set_title(wrapped(world), fontsize=10)
        tidy(axis)
    axes[0].set_ylabel("total regret")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return figure
