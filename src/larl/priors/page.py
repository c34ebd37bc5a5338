"""The HTML page of a prior: the population as a table, and figures over its units. It loads nothing else."""

from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from larl._core.files import write_atomically
from larl._core.validation import instance, path_like
from larl.diagnosis.figures import DARK, LIGHT, Theme, new_figure
from larl.diagnosis.page import render_document, render_picture, render_table
from larl.policies.auto.prior import Prior
from larl.policies.auto.prior_table import COLUMNS, describe_rows
from larl.priors.summaries import ar_process
from larl.priors.units import Floats

LAGS = 20
DRAWS = 400  # units that are drawn from the prior for the bands
CAPTIONS = {
    "autocorrelation": "Autocorrelation of the latent state: that of the population's mean (line), and of 90% of units "
    "(band), drawn from the prior.",
    "units": "Regret per step of each unit, for its fitted parameters and the population's levels: of random choices, "
    "and the least that is possible with full information. The distance is what a policy can gain.",
}


def write_page(prior: Prior, path: str | Path) -> Path:
    """Write a prior as an HTML page, for readers who do not use Python; return its path.

    Parameters
    ----------
    prior : Prior
        Returned by `larl.learn_prior`.
    path : str or Path
        The file; one that exists is replaced.

    Returns
    -------
    Path
    """
    instance(Prior, "a larl.Prior")("write_page", "prior", prior)
    target = path_like("write_page", "path", path)
    return write_atomically(target, lambda draft: draft.write_text(render_page(prior), encoding="utf-8"))


def render_page(prior: Prior) -> str:
    """Return the page as HTML."""
    about = f"{prior.units:,} units with {prior.steps:,} {prior.rewards} rewards; arms: {', '.join(prior.arms)}."
    parts = [f"<p>{escape(about)}</p>", _picture("autocorrelation", prior)]
    header = ["parameter", *COLUMNS]
    for part in prior.components:
        parts += [
            f"<h2>Order {part.order}, probability {part.weight:.2f}</h2>",
            render_table(header, [list(row) for row in describe_rows(part, prior)]),
        ]
    if any(each.floor is not None for each in prior.unit_summaries):
        parts += ["<h2>Units</h2>", _picture("units", prior)]
    return render_document("Prior from earlier units", "\n".join(parts))


def _picture(name: str, prior: Prior) -> str:
    """Return a figure as HTML, with a light and a dark version."""
    draw = {"autocorrelation": plot_autocorrelation, "units": plot_units}[name]
    return render_picture(draw(prior, LIGHT), draw(prior, DARK), CAPTIONS[name])


def autocorrelations(psi: Floats) -> Floats:
    """Return the autocorrelations at lags 0 … LAGS of the AR process with atanh(partial autocorrelations) psi."""
    gammas, first = ar_process(psi)
    found = np.zeros(LAGS + 1)
    for lag in range(LAGS + 1):
        is_start = lag < first.size
        found[lag] = first[lag] if is_start else gammas @ found[lag - 1 : lag - 1 - gammas.size : -1]
    return found


def plot_autocorrelation(prior: Prior, theme: Theme) -> Figure:
    """Return the figure of the autocorrelation with its band over units, of the most probable component."""
    part = max(prior.components, key=lambda each: each.weight)
    generator, p = np.random.default_rng(0), part.order
    units = generator.multivariate_normal(np.array(part.mean)[:p], np.diag(np.square(part.spread[:p])), DRAWS)
    drawn = np.array([autocorrelations(psi) for psi in units])
    low, high = np.quantile(drawn, (0.05, 0.95), axis=0)
    figure, (axes,) = new_figure(3.0, theme)
    axes.fill_between(range(LAGS + 1), low, high, alpha=0.25, color=theme.colours[0], linewidth=0)
    axes.plot(autocorrelations(np.array(part.mean[:p])), color=theme.colours[0], marker="o", markersize=3)
    axes.axhline(0.0, color=theme.foreground, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("lag, steps")
    axes.set_ylabel("autocorrelation")
    return figure


def plot_units(prior: Prior, theme: Theme) -> Figure:
    """Return the figure of random regret and floor by unit, sorted by random regret."""
    pairs = [(each.random_regret, each.floor) for each in prior.unit_summaries if each.random_regret is not None]
    random, floor = np.array(sorted(pairs), dtype=float).T
    figure, (axes,) = new_figure(3.0, theme)
    place = np.arange(random.size)
    axes.vlines(place, floor, random, color=theme.colours[0])
    axes.plot(place, random, "o", markersize=4, color=theme.colours[0], label="random")
    axes.plot(place, floor, "o", markersize=4, color=theme.colours[1], label="least possible")
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([])
    axes.set_xlabel("units, sorted by random regret")
    axes.set_ylabel("regret per step")
    axes.legend(frameon=False, labelcolor=theme.foreground)
    return figure
