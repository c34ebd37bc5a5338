"""The figure of the report on real data: the share of each policy in each problem."""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from larl.simulation.figure import add_caption, longest_line, new_figure, text_inches, wrap


def plot_shares(shares: pd.DataFrame) -> Figure:
    """Plot a table of shares, policies × problems; dark is close to the best arm at every step, nan is left empty."""
    rows, columns = [wrap(str(name)) for name in shares.index], [wrap(str(name), 28) for name in shares.columns]
    slanted = text_inches(longest_line(columns), 8)
    width = 0.9 + text_inches(longest_line(rows), 8) + 0.42 * len(columns)
    figure = new_figure(width, 0.7 + 0.85 * slanted + 0.25 * len(rows))
    axis, values = figure.subplots(), shares.to_numpy(dtype=float)
    low, high = (min(0.0, np.nanmin(values)), max(1.0, np.nanmax(values))) if values.size else (0.0, 1.0)
    axis.imshow(values, cmap=colormaps["viridis_r"], vmin=low, vmax=high, aspect="auto")
    for i, j in np.argwhere(np.isfinite(values)):
        is_dark = values[i, j] > (low + high) / 2.0
        text = f"{values[i, j]:.0f}".replace("-", "−")
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if is_dark else "black")
    axis.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    add_caption(figure, "share between a random arm (0) and the best arm at every step (100)")
    return figure
