"""The figures of a `Result`, as methods, and its table in a notebook."""

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 40  # of the table in a notebook


class ResultFigures:
    """Methods that show a `Result`."""

    def _repr_html_(self: Any) -> str:
        table = self.summary().to_html(float_format="{:.4g}".format, max_rows=MAX_ROWS, border=0)
        return f"<div><strong>{escape(repr(self).strip('<>'))}</strong>{table}</div>"

    def plot_regret(self, **options: Any) -> "Figure":
        """Plot mean cumulative regret over time.

        Parameters
        ----------
        **options
            Keyword arguments of `larl.plots.plot_regret`.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each world.

        Examples
        --------
        >>> import larl
        >>> result = larl.compare({"UCB": larl.UCB()}, larl.worlds.paper(1), horizon=50, trials=4)
        >>> len(result.plot_regret(skip="k").axes)
        1
        """
        from larl.simulation.plots import plot_regret

        return plot_regret(self, **options)  # type: ignore[arg-type]

    def plot_wins(self, **options: Any) -> "Figure":
        """Plot pairwise win rates.

        Parameters
        ----------
        **options
            Keyword arguments of `larl.plots.plot_wins`.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each world.

        Examples
        --------
        >>> import larl
        >>> policies = {"LARL": larl.LARL(s=1), "UCB": larl.UCB()}
        >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=50, trials=4)
        >>> len(result.plot_wins().axes)
        1
        """
        from larl.simulation.plots import plot_wins

        return plot_wins(self, **options)  # type: ignore[arg-type]

    def plot_lookback(self, **options: Any) -> "Figure":
        """Plot mean total regret over s, the number of past steps that a policy uses.

        Parameters
        ----------
        **options
            Keyword arguments of `larl.plots.plot_lookback`.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each world.

        Examples
        --------
        >>> import larl
        >>> policies = {f"s = {s}": larl.LARL(s) for s in range(3)}
        >>> result = larl.compare(policies, larl.worlds.paper(1), horizon=50, trials=4)
        >>> len(result.plot_lookback().axes)
        1
        """
        from larl.simulation.plots import plot_lookback

        return plot_lookback(self, **options)  # type: ignore[arg-type]
