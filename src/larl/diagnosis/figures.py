"""The figures of a diagnosis, each for a light and for a dark page. Beside larl.plots the only module that draws."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from larl.diagnosis.estimates import WORTH, Draw
from larl.diagnosis.replay import KALMAN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from larl.diagnosis import Diagnosis
    from larl.diagnosis.kernels import Floats

WIDTH = 5.6  # inches: narrow, so that letters stay readable on a phone
SHOWN = 250  # rows of the figure over time
LEGIBLE = 6  # arms that have a colour of their own


class Theme(NamedTuple):
    """Colours of a page."""

    ink: str
    page: str
    soft: str
    colours: tuple[str, ...]  # that the colour-blind tell apart on this page


LIGHT = Theme("#1a1a1a", "#ffffff", "#8a8a8a", ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#4B9BD1"))
DARK = Theme("#e8e8e8", "#161616", "#8f8f8f", ("#56B4E9", "#FF8F4D", "#2FC79A", "#E8A5CC", "#E6B422", "#A9D6F5"))


def figures(diagnosis: "Diagnosis", theme: Theme) -> dict[str, Figure]:
    """Every figure that the diagnosis has something for."""
    found = {}
    if diagnosis.estimates is not None:
        found = {
            "time": plot_time(diagnosis, theme),
            "memory": plot_memory(diagnosis, theme),
            "forecasts": plot_forecasts(diagnosis, theme),
            "orders": plot_orders(diagnosis, theme),
        }
    if diagnosis.replay is not None:
        found["saved"] = plot_saved(diagnosis, theme)
    return found


def _begun(height: float, theme: Theme, rows: int = 1) -> tuple[Figure, list["Axes"]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=theme.page)
    axes = list(figure.subplots(rows, 1, squeeze=False, sharex=rows > 1).ravel())
    for axis in axes:
        axis.set_facecolor(theme.page)
        axis.grid(color=theme.soft, alpha=0.25, linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(theme.soft)
        axis.tick_params(labelsize=9, colors=theme.ink)
        for label in (axis.xaxis.label, axis.yaxis.label):
            label.set_color(theme.ink)
            label.set_fontsize(10)
    return figure, axes


def smoothed(draws: "list[Draw]") -> tuple["Floats", "Floats"]:
    """Mean and standard deviation of z over draws, each turned to agree with the first; z has variance 1."""
    moving = [draw for draw in draws if draw.order] or draws
    lead = moving[0]
    means, variances = [], []
    for draw in moving:
        beta = draw.setting.beta[0] @ lead.setting.beta[0]
        means.append(draw.z * (-1.0 if beta < 0.0 else 1.0))
        variances.append(draw.variance)
    mean = np.mean(means, axis=0)
    return mean, np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


def plot_time(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Rewards by arm over time of one unit, and the hidden state that the whole log makes likely, with a 95% band."""
    log, found = diagnosis.fitted, diagnosis.estimates
    assert found is not None
    starts = np.append(np.flatnonzero(log.gap <= 0), log.rows)
    longest = int(np.diff(starts).argmax())
    rows = np.arange(starts[longest], min(starts[longest + 1], starts[longest] + SHOWN))
    figure, (above, below) = _begun(4.6, theme, rows=2)
    step, arms = log.step[rows] + 1, log.arm[rows]
    common = np.argsort(-np.bincount(arms, minlength=log.arms), kind="stable")[:LEGIBLE]
    for place, arm in enumerate(np.sort(common)):
        mine = arms == arm
        above.plot(
            step[mine],
            log.reward[rows][mine],
            "os^Dv*"[place],
            markersize=3.5,
            alpha=0.85,
            color=theme.colours[place],
            label=_plain(log.labels[arm]),
            linestyle="none",
        )
    rest = ~np.isin(arms, common)
    if rest.any():
        above.plot(step[rest], log.reward[rows][rest], ".", color=theme.soft, markersize=3, label="other arms")
    above.set_ylabel("reward")
    legend = figure.legend(
        *above.get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9, frameon=False, title="arm"
    )
    for text in [*legend.get_texts(), legend.get_title()]:
        text.set_color(theme.ink)
        text.set_fontsize(9)
    mean, sd = smoothed(list(found.draws))
    below.fill_between(
        step, (mean - 1.96 * sd)[rows], (mean + 1.96 * sd)[rows], color=theme.ink, alpha=0.2, linewidth=0
    )
    below.plot(step, mean[rows], color=theme.ink, linewidth=1.3)
    below.axhline(0.0, color=theme.soft, linewidth=0.8)
    below.set_ylabel("hidden state")
    below.set_xlabel("step" if log.units == 1 else "step of the unit with the longest piece")
    return figure


def plot_memory(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Autocorrelation of residuals over lags, with the band of logs without drift."""
    drift = diagnosis.drift
    figure, (axis,) = _begun(2.8, theme)
    lags = np.arange(1, drift.lags.size + 1)
    low, high = drift.band
    edges = np.concatenate([[0.5], lags + 0.5])
    axis.stairs(high, edges, baseline=low, fill=True, color=theme.soft, alpha=0.35, linewidth=0)
    out = (drift.lags < low) | (drift.lags > high)
    axis.vlines(lags, 0.0, drift.lags, color=np.where(out, theme.colours[1], theme.colours[0]), linewidth=2.5)
    axis.scatter(lags, drift.lags, color=np.where(out, theme.colours[1], theme.colours[0]), s=26, zorder=3)
    axis.axhline(0.0, color=theme.ink, linewidth=0.8)
    axis.set_xticks(lags)
    axis.set_xlabel("steps apart (band: 95% of logs without drift)")
    axis.set_ylabel("autocorrelation")
    return figure


def plot_forecasts(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """R² over the steps that a forecast looks ahead, with its 95% band."""
    assert diagnosis.estimates is not None
    sample = 100.0 * diagnosis.estimates.forecasts
    low, value, high = np.quantile(sample, [0.025, 0.5, 0.975], axis=0)
    shown = min(max(int((high >= 100.0 * WORTH).sum()) + 2, 10), high.size)
    figure, (axis,) = _begun(2.8, theme)
    ahead = np.arange(1, shown + 1)
    axis.fill_between(ahead, low[:shown], high[:shown], color=theme.colours[0], alpha=0.25, linewidth=0)
    axis.plot(ahead, value[:shown], color=theme.colours[0], marker="o", markersize=3.5)
    axis.axhline(100.0 * WORTH, color=theme.soft, linestyle="--", linewidth=1.0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.5, shown + 0.5)
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("steps ahead (band: 95%; dashes: 5%)")
    axis.set_ylabel("predicted, %")
    return figure


def plot_orders(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """The weight of every order, the 95% range shaded."""
    found = diagnosis.estimates
    assert found is not None
    figure, (axis,) = _begun(2.8, theme)
    low, high = found.orders
    axis.axvspan(low - 0.5, high + 0.5, color=theme.soft, alpha=0.25, linewidth=0)
    orders = np.arange(found.weights.size)
    colours = [theme.colours[1] if order == found.best else theme.colours[0] for order in orders]
    axis.bar(orders, 100.0 * found.weights, width=0.7, color=colours)
    axis.set_xticks(orders)
    axis.set_xlabel("order k of the hidden process (shaded: 95% of the evidence)")
    axis.set_ylabel("evidence, %")
    return figure


def plot_saved(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """What each candidate would have saved a step beside the log's own choices, with 95% intervals."""
    replay = diagnosis.replay
    assert replay is not None
    names = [KALMAN, *replay.ranked][::-1]
    figure, (axis,) = _begun(0.7 + 0.36 * len(names), theme)
    reach = [replay.saved(name) for name in names]
    low, high = min(0.0, *(each.low for each in reach)), max(0.0, *(each.high for each in reach))
    for place, (name, (value, left, right)) in enumerate(zip(names, reach, strict=True)):
        colour = theme.soft if name == KALMAN else theme.colours[1 if name == replay.best else 0]
        axis.plot([left, right], [place, place], color=colour, linewidth=2.5, solid_capstyle="round")
        axis.plot(value, place, "o", color=colour, markersize=5)
        weight = "bold" if name == replay.best else "normal"
        axis.text(
            low + 0.008 * (high - low),
            place + 0.16,
            name,
            color=theme.ink,
            fontsize=8,
            fontweight=weight,
            va="bottom",
            parse_math=False,
        )
    axis.axvline(0.0, color=theme.ink, linewidth=0.9)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(-0.5, len(names) - 0.2)
    axis.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axis.set_xlabel("reward saved a step (0: the log's own choices)")
    return figure


def _plain(name: str) -> str:
    """A label as it is written, shortened: a dollar sign begins no mathematics, a leading underscore hides nothing."""
    short = name if len(name) <= 16 else name[:15] + "…"
    return ("\u200b" if short.startswith("_") else "") + short.replace("$", r"\$")
