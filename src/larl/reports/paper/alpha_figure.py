"""The figure of regret over α."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from larl.simulation.figure import COLOURS


class Curve(NamedTuple):
    """Mean regret for each α, with standard errors."""

    alpha: Sequence[float]
    mean: Sequence[float]
    error: Sequence[float]


def plot_alpha(curves: Mapping[str, Mapping[str, Curve]], marks: Mapping[str, Mapping[str, float]]) -> Figure:
    """Plot mean total regret over α: one panel for each world, one line for each policy, vertical lines at `marks`."""
    figure = Figure(figsize=(2.0 + 2.9 * len(curves), 3.4), layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False).ravel()
    for axis, (world, lines) in zip(axes, curves.items(), strict=True):
        for number, (policy, curve) in enumerate(lines.items()):
            bars = [2.0 * error for error in curve.error]
            axis.errorbar(
                curve.alpha,
                curve.mean,
                bars,
                color=COLOURS[number],
                marker="o",
                markersize=3,
                linewidth=1.4,
                label=policy,
            )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_ylim(bottom=0)
        axis.set_title(world, fontsize=10)
        axis.set_xlabel("α", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25, linewidth=0.5)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        for number, (text, value) in enumerate(marks[world].items()):
            axis.axvline(value, color="0.4", linestyle=("--", ":")[number % 2], linewidth=1.0, label=text)
    axes[0].set_ylabel("total regret", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside right center")
    return figure
