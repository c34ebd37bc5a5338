"""Figures of total regret over the lookback s of a policy, or over the horizon."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from larl._core.validation import InvalidValue
from larl.simulation.figure import (
    STYLES,
    check_result,
    line_count,
    line_style,
    longest_line,
    new_figure,
    select_world,
    style_axes,
    text_inches,
    wrap,
)

if TYPE_CHECKING:
    from larl.simulation.result import Result


def plot_lookback(result: "Result", orders: Sequence[int] | None = None, *, skip: int | str = "k") -> Figure:
    """Plot mean total regret over s, the number of past steps that a policy uses, with bars of two standard errors.

    s is read from each policy's specification, not from its name. There is one line for each world, and for each set of
    other parameters if there are several; the minimum of a line is marked. Policies without s are dotted lines.

    Parameters
    ----------
    result : Result
        The result of `larl.compare`, with at least one policy that has s.
    orders : sequence of int, optional
        The k of each world, to label the lines.
    skip : int, >= 0, or "k", default "k"
        Number of first steps that do not count; "k" skips the first k steps of each world.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; notebooks show it.

    Raises
    ------
    InvalidValue
        No policy has s, or two policies differ in their name only.

    Examples
    --------
    >>> import larl
    >>> policies = {f"s = {s}": larl.LARL(s) for s in (1, 2, 3)}
    >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=200, trials=50)
    >>> figure = larl.plots.plot_lookback(result)
    >>> list(figure.axes[0].lines[0].get_xdata())
    [1, 2, 3]
    """
    check_result("plot_lookback", result)
    panels = result.worlds or [""]
    if orders is not None and len(orders) != len(panels):
        raise InvalidValue("plot_lookback", "orders", orders, f"{len(panels)} numbers, one for each world")
    mean, error = _mean_and_error(result.total(skip))
    figure = new_figure(5.2, 3.4)
    axis = figure.subplots()
    index = 0
    for world_index, world in enumerate(panels):
        lines, others = _lines_by_lookback(result, world)
        title = f"k = {orders[world_index]}" if orders is not None else world
        for group, points in lines.items():
            label = " · ".join(part for part in (title, group if len(lines) > 1 else "") if part)
            s, names = list(points), list(points.values())
            y, half = (select_world(each, world).sel(policy=names).values for each in (mean, 2 * error))
            style = line_style(index) | {"linestyle": STYLES[index % 4]}
            axis.errorbar(s, y, half, **style, marker=".", label=wrap(label, 40) or None)
            axis.plot(s[y.argmin()], y.min(), "o", color=style["color"], markersize=8, fillstyle="none")
            index += 1
        for name in others:
            y = float(select_world(mean, world).sel(policy=name))
            label = " · ".join(part for part in (title, name) if part)
            axis.axhline(y, color=line_style(index)["color"], linestyle=":", linewidth=1.2, label=wrap(label, 40))
            index += 1
    axis.set_xlabel("s, the steps that the policy looks back (○ the best)", fontsize=9)
    axis.set_ylabel("total regret", fontsize=9)
    axis.set_ylim(bottom=0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    style_axes(axis)
    handles, labels = axis.get_legend_handles_labels()
    if labels:
        figure.set_figwidth(3.6 + max(1.6, 0.6 + text_inches(longest_line(labels), 8)))
        figure.set_figheight(max(3.4, 0.5 + 0.17 * line_count(labels)))
        figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside right center")
    return figure


def _lines_by_lookback(result: "Result", world: str) -> tuple[dict[str, dict[int, str]], list[str]]:
    """Return the lines, {other parameters: {s: policy's name}} in order of s, and the policies without s."""
    specs: dict[str, Any] = json.loads(result.data.attrs["policies"])
    specs_here = specs[world] if world else next(iter(specs.values()))
    lines: dict[str, dict[int, str]] = {}
    others = []
    for name in result.policies:
        spec = dict(specs_here[name])
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
    return {_distinct_settings(group, list(lines)): dict(sorted(line.items())) for group, line in lines.items()}, others


def _distinct_settings(group: str, groups: list[str]) -> str:
    """Return the settings of a group that are not the same in all groups."""
    common = set.intersection(*(set(each.split(", ")) for each in groups))
    return ", ".join(part for part in group.split(", ") if part not in common) or group


def _mean_and_error(total: Any) -> tuple[Any, Any]:
    """Return the mean over trials, and its standard error (0 for a single trial)."""
    trials = total.sizes["trial"]
    return total.mean("trial"), total.std("trial", ddof=min(1, trials - 1)) / np.sqrt(trials)


def plot_growth(results: "Mapping[int, Result]") -> Figure:
    """Plot mean total regret over the horizon on logarithmic axes, with one panel for each world.

    Parameters
    ----------
    results : mapping from int to Result
        For each horizon the result of `larl.compare` with the same policies and worlds.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; bars are two standard errors.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.paper(1)
    >>> results = {T: larl.compare({"UCB": larl.UCB()}, world, horizon=T, trials=20) for T in (50, 100)}
    >>> figure = larl.plots.plot_growth(results)
    >>> figure.axes[0].get_xscale()
    'log'
    """
    if not isinstance(results, Mapping) or not results:
        raise InvalidValue("plot_growth", "results", results, "a mapping from horizons to results")
    for horizon, result in results.items():
        check_result(f"plot_growth: results[{horizon!r}]", result)
    horizons = sorted(results)
    first = results[horizons[0]]
    panels, names = first.worlds or [""], [wrap(name) for name in first.policies]
    legend_width = max(2.2, 0.9 + text_inches(longest_line(names), 8))
    figure = new_figure(legend_width + 2.3 * len(panels), max(3.2, 0.5 + 0.17 * line_count(names)))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, world in zip(axes, panels, strict=True):
        for index, (policy, label) in enumerate(zip(first.policies, names, strict=True)):
            points = [_mean_and_error(select_world(results[t].total(), world).sel(policy=policy)) for t in horizons]
            mean, error = (np.array([float(point[part]) for point in points]) for part in (0, 1))
            style = line_style(index) | {"linestyle": STYLES[index % 4]}
            axis.errorbar(horizons, mean, 2 * error, **style, marker=".", label=label)
        axis.set(xscale="log", yscale="log", xlabel="T")
        axis.set_title(wrap(world), fontsize=10)
        style_axes(axis)
    axes[0].set_ylabel("total regret")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return figure
