"""The figures of a diagnosis, each for a light and for a dark page."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from larl.diagnosis.estimates import MIN_SHARE, PosteriorDraw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from larl.diagnosis import Diagnosis
    from larl.diagnosis.kernels import Floats

WIDTH = 5.6  # inches; narrow, so that text is readable on a phone
MAX_ROWS = 250  # in the figure over time
MAX_COLOURED_ARMS = 6


class Theme(NamedTuple):
    """Colours of a page."""

    foreground: str
    background: str
    muted: str
    colours: tuple[str, ...]  # distinguishable with colour blindness


LIGHT = Theme("#1a1a1a", "#ffffff", "#8a8a8a", ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#4B9BD1"))
DARK = Theme("#e8e8e8", "#161616", "#8f8f8f", ("#56B4E9", "#FF8F4D", "#2FC79A", "#E8A5CC", "#E6B422", "#A9D6F5"))


def draw_figures(diagnosis: "Diagnosis", theme: Theme) -> dict[str, Figure]:
    """Return the figures for which the diagnosis has results, by name."""
    figures = {}
    if diagnosis.estimates is not None:
        figures = {
            "time": plot_time(diagnosis, theme),
            "memory": plot_memory(diagnosis, theme),
            "forecasts": plot_forecasts(diagnosis, theme),
            "orders": plot_orders(diagnosis, theme),
        }
    if diagnosis.replay is not None:
        figures["saved"] = plot_saved(diagnosis, theme)
    return figures


def new_figure(height: float, theme: Theme, rows: int = 1) -> tuple[Figure, list["Axes"]]:
    """Return an empty figure and its axes in the colours of a theme."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=theme.background)
    axes = list(figure.subplots(rows, 1, squeeze=False, sharex=rows > 1).ravel())
    for axis in axes:
        axis.set_facecolor(theme.background)
        axis.grid(color=theme.muted, alpha=0.25, linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(theme.muted)
        axis.tick_params(labelsize=9, colors=theme.foreground)
        for label in (axis.xaxis.label, axis.yaxis.label):
            label.set_color(theme.foreground)
            label.set_fontsize(10)
    return figure, axes


def average_state(draws: "list[PosteriorDraw]") -> tuple["Floats", "Floats"]:
    """Return mean and standard deviation of z over draws. The sign of each draw agrees with the first one's."""
    with_state = [draw for draw in draws if draw.order] or draws
    first = with_state[0]
    means, variances = [], []
    for draw in with_state:
        beta = draw.parameters.beta[0] @ first.parameters.beta[0]
        means.append(draw.z * (-1.0 if beta < 0.0 else 1.0))
        variances.append(draw.variance)
    mean = np.mean(means, axis=0)
    return mean, np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


def plot_time(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Plot the rewards of one unit by arm over time, and the estimated hidden state with a 95% band."""
    log, estimates = diagnosis.fitted, diagnosis.estimates
    assert estimates is not None
    starts = np.append(np.flatnonzero(log.gap <= 0), log.rows)
    longest = int(np.diff(starts).argmax())
    rows = np.arange(starts[longest], min(starts[longest + 1], starts[longest] + MAX_ROWS))
    figure, (above, below) = new_figure(4.6, theme, rows=2)
    step, arms = log.step[rows] + 1, log.arm[rows]
    common = np.argsort(-np.bincount(arms, minlength=log.arms), kind="stable")[:MAX_COLOURED_ARMS]
    # Arms of binary rewards have a line each; else their points would cover each other.
    distance = 0.07 if diagnosis.rewards.kind == "binary" else 0.0
    for index, arm in enumerate(np.sort(common)):
        of_arm = arms == arm
        above.plot(
            step[of_arm],
            log.reward[rows][of_arm] + distance * index,
            "os^Dv*"[index],
            markersize=3.5,
            alpha=0.85,
            color=theme.colours[index],
            label=_short_label(log.labels[arm]),
            linestyle="none",
        )
    rest = ~np.isin(arms, common)
    if rest.any():
        above.plot(step[rest], log.reward[rows][rest], ".", color=theme.muted, markersize=3, label="other arms")
    above.set_ylabel("reward")
    if distance:
        above.set_yticks([0.0, 1.0])
    legend = figure.legend(
        *above.get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9, frameon=False, title="arm"
    )
    for text in [*legend.get_texts(), legend.get_title()]:
        text.set_color(theme.foreground)
        text.set_fontsize(9)
    mean, sd = average_state(list(estimates.draws))
    below.fill_between(
        step, (mean - 1.96 * sd)[rows], (mean + 1.96 * sd)[rows], color=theme.foreground, alpha=0.2, linewidth=0
    )
    below.plot(step, mean[rows], color=theme.foreground, linewidth=1.3)
    below.axhline(0.0, color=theme.muted, linewidth=0.8)
    below.set_ylabel("hidden state")
    below.set_xlabel("step" if log.units == 1 else "step of the unit with the longest segment")
    return figure


def plot_memory(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Plot the autocorrelation of residuals, with the 95% band of logs without drift."""
    drift = diagnosis.drift
    figure, (axis,) = new_figure(2.8, theme)
    lags = np.arange(1, drift.lags.size + 1)
    low, high = drift.band
    edges = np.concatenate([[0.5], lags + 0.5])
    axis.stairs(high, edges, baseline=low, fill=True, color=theme.muted, alpha=0.35, linewidth=0)
    is_outside = (drift.lags < low) | (drift.lags > high)
    axis.vlines(lags, 0.0, drift.lags, color=np.where(is_outside, theme.colours[1], theme.colours[0]), linewidth=2.5)
    axis.scatter(lags, drift.lags, color=np.where(is_outside, theme.colours[1], theme.colours[0]), s=26, zorder=3)
    axis.axhline(0.0, color=theme.foreground, linewidth=0.8)
    axis.set_xticks(lags)
    axis.set_xlabel("steps apart (band: 95% of logs without drift)")
    axis.set_ylabel("autocorrelation")
    return figure


def plot_forecasts(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Plot R² against the number of steps ahead, with a 95% band."""
    assert diagnosis.estimates is not None
    sample = 100.0 * diagnosis.estimates.forecasts
    low, value, high = np.quantile(sample, [0.025, 0.5, 0.975], axis=0)
    shown = min(max(int((high >= 100.0 * MIN_SHARE).sum()) + 2, 10), high.size)
    figure, (axis,) = new_figure(2.8, theme)
    ahead = np.arange(1, shown + 1)
    axis.fill_between(ahead, low[:shown], high[:shown], color=theme.colours[0], alpha=0.25, linewidth=0)
    axis.plot(ahead, value[:shown], color=theme.colours[0], marker="o", markersize=3.5)
    axis.axhline(100.0 * MIN_SHARE, color=theme.muted, linestyle="--", linewidth=1.0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.5, shown + 0.5)
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("steps ahead (band: 95%; dashes: 5%)")
    axis.set_ylabel("predicted, %")
    return figure


def plot_orders(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Plot the posterior probability of every order, with the 95% range shaded."""
    estimates = diagnosis.estimates
    assert estimates is not None
    figure, (axis,) = new_figure(2.8, theme)
    low, high = estimates.orders
    axis.axvspan(low - 0.5, high + 0.5, color=theme.muted, alpha=0.25, linewidth=0)
    orders = np.arange(estimates.weights.size)
    colours = [theme.colours[1] if order == estimates.best else theme.colours[0] for order in orders]
    axis.bar(orders, 100.0 * estimates.weights, width=0.7, color=colours)
    axis.set_xticks(orders)
    axis.set_xlabel("order k of the hidden process (shaded: 95% of the probability)")
    axis.set_ylabel("probability, %")
    return figure


def plot_saved(diagnosis: "Diagnosis", theme: Theme) -> Figure:
    """Plot what each candidate saves per step compared with the log's own choices, with 95% intervals."""
    replay = diagnosis.replay
    assert replay is not None
    names = [replay.oracle, *replay.ranked][::-1]
    figure, (axis,) = new_figure(0.7 + 0.36 * len(names), theme)
    savings = [replay.saving_of(name) for name in names]
    low, high = min(0.0, *(each.low for each in savings)), max(0.0, *(each.high for each in savings))
    for row, (name, (value, left, right)) in enumerate(zip(names, savings, strict=True)):
        colour = theme.muted if name == replay.oracle else theme.colours[1 if name == replay.best else 0]
        axis.plot([left, right], [row, row], color=colour, linewidth=2.5, solid_capstyle="round")
        axis.plot(value, row, "o", color=colour, markersize=5)
        weight = "bold" if name == replay.best else "normal"
        axis.text(
            low + 0.008 * (high - low),
            row + 0.16,
            name,
            color=theme.foreground,
            fontsize=8,
            fontweight=weight,
            va="bottom",
            parse_math=False,
        )
    axis.axvline(0.0, color=theme.foreground, linewidth=0.9)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(-0.5, len(names) - 0.2)
    axis.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axis.set_xlabel("reward saved per step (0: the log's own choices)")
    return figure


def _short_label(name: str) -> str:
    """Return a shortened label in which matplotlib shows dollar signs and leading underscores as they are."""
    short = name if len(name) <= 16 else name[:15] + "…"
    return ("\u200b" if short.startswith("_") else "") + short.replace("$", r"\$")
