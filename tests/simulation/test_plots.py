"""Figures: nothing is clipped for any number of policies and any length of their names."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import larl
from larl import worlds
from larl.simulation import plots

LONG = "Discounted Thompson sampling with a long descriptive name, discount = 0.98, number {}"
WORLDS = {"the paper's world of order 1, with scaled noise and a far start": worlds.paper(1), "k = 5": worlds.paper(5)}


def result(count: int, name: str, world: object = None) -> larl.Result:
    policies = {name.format(i): larl.UCB(alpha=0.1 + 0.2 * i) for i in range(count)}
    return larl.compare(policies, world or worlds.paper(1), horizon=20, trials=20, progress=False)


def assert_not_clipped(figure: Figure) -> None:
    """Check the layout of a figure that is saved, without its pixels; drawing it again may change the layout."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    box, size = figure.get_tightbbox(figure.canvas.get_renderer()), figure.get_size_inches()
    assert (np.array([box.x0, box.y0]) > -0.01).all(), box
    assert (np.array([box.x1, box.y1]) < size + 0.01).all(), (box, size)
    for axis in figure.axes:
        inches = axis.get_window_extent().size / figure.dpi
        assert (inches > 0.7).all(), inches


SHORT, USUAL = "P{}", "LARL s={} alpha=0.5"
SIZES = [(1, SHORT), (1, LONG), (2, USUAL), (3, SHORT), (3, LONG), (8, USUAL), (20, LONG)]


@pytest.mark.parametrize(("count", "name"), SIZES)
def test_figures_of_a_comparison_are_not_clipped(count, name):
    note = "LARL: the best of 4 candidates (those with the least mean regret in a world, chosen on these same trials)"
    for world in (None, WORLDS):
        comparison = result(count, name, world)
        for figure in (
            comparison.plot_regret(),
            comparison.plot_wins(),
            comparison.plot_regret(note=note),
            comparison.plot_wins(note=note),
        ):
            assert_not_clipped(figure)
    assert_not_clipped(comparison.plot_regret(stacked=True))


@pytest.mark.parametrize("stacked", [False, True])
def test_legend_names_the_regret_floor(stacked):
    floors = dict.fromkeys(WORLDS, 0.1)
    figure = result(2, SHORT, WORLDS).plot_regret(regret_floors=floors, stacked=stacked)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["P0", "P1", "regret floor"]
    assert_not_clipped(figure)


@pytest.mark.parametrize("count", [1, 5, 12])
@pytest.mark.parametrize("name", ["P{}", LONG], ids=["short", "long"])
def test_other_figures_are_not_clipped(count, name):
    names = [name.format(i) for i in range(count)]
    assert_not_clipped(plots.plot_shares(names, names, np.full((count, count), 0.5)))
    assert_not_clipped(plots.plot_gap_closed(names, names, [[(50.0, 5.0)] * count] * count))
    for world in (None, WORLDS):
        assert_not_clipped(plots.plot_growth({t: result(count, name, world) for t in (10, 100)}))


def lookback(policies: dict[str, larl.policies.Policy], world: object = None) -> larl.Result:
    return larl.compare(policies, world or worlds.paper(1), horizon=30, trials=20, progress=False)


def test_lookback_reads_s_from_the_specs_not_from_the_names():
    named = lookback({"short memory": larl.LARL(1), "none": larl.LARL(0), "five": larl.LARL(5)})
    figure = named.plot_lookback()
    assert_not_clipped(figure)
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [0, 1, 5]
    total = named.total("k").mean("trial")
    assert line.get_ydata() == pytest.approx(total.sel(policy=["none", "short memory", "five"]).values)


def test_lookback_has_a_line_for_each_setting_and_each_policy_without_s():
    policies = {f"a{s}{alpha}": larl.LARL(s, alpha=alpha) for s in (0, 2) for alpha in (0.5, 1.0)}
    figure = lookback(policies | {"UCB": larl.UCB(), LONG: larl.Random()}, WORLDS).plot_lookback()
    assert_not_clipped(figure)
    labels = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert len(labels) == 2 * (2 + 2)
    assert "k = 5 · alpha=0.5" in labels
    assert "k = 5 · UCB" in labels


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"UCB": larl.UCB()}, "at least one policy that has s"),
        ({"one": larl.LARL(1), "two": larl.LARL(1)}, "policy = 'two' .* 'one' has the same settings"),
    ],
)
def test_lookback_refuses_policies_without_a_line(policies, message):
    with pytest.raises(larl.InvalidValue, match=message):
        lookback(policies).plot_lookback()
