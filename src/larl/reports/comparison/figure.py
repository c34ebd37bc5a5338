"""The figure of the comparison: regret of each policy relative to the least in each world."""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from larl.simulation.figure import add_caption, longest_line, new_figure, text_inches, wrap

MAX_RATIO = 5.0  # the colour of larger ratios


def plot_ratios(ratios: pd.DataFrame) -> Figure:
    """Plot a table of ratios, policies × worlds; light is close to the best, nan is left empty."""
    rows, columns = [wrap(str(name)) for name in ratios.index], [wrap(str(name), 28) for name in ratios.columns]
    width = 0.6 + text_inches(longest_line(rows), 8) + 0.42 * len(columns)
    slanted = text_inches(longest_line(columns), 8)
    figure = new_figure(width + 0.3, 0.7 + 0.85 * slanted + 0.25 * len(rows))
    axis, values = figure.subplots(), ratios.to_numpy()
    axis.imshow(values, cmap=colormaps["viridis_r"], norm=LogNorm(1.0, MAX_RATIO, clip=True), aspect="auto")
    for i, j in np.argwhere(np.isfinite(values)):
        is_dark = values[i, j] > MAX_RATIO**0.5
        text = f"{values[i, j]:.2f}" if values[i, j] < 9.95 else f"{values[i, j]:.0f}"
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if is_dark else "black")
    axis.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    add_caption(figure, "regret ÷ the least regret of a policy that does not know the world; below 1: policies that do")
    return figure
