"""The tables of docs/theory.md: they are written between markers, and the page's figures support its statements."""

import pytest

import larl
from larl.reports import theory
from larl.theory import random_regret, regret_bound, steady_start
from tests.documents import ROOT


def rows(page: str, name: str) -> dict[str, list[str]]:
    """Return the cells of a table between its markers."""
    text = page.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return {cells[0]: cells[1:] for cells in table}


def test_tables_replace_the_text_between_markers(tmp_path, monkeypatch):
    monkeypatch.setattr(theory, "LADDER", {60: 2, 120: 2})
    tables = {"decomposition": theory.decomposition_table(4, 1), "ladder": theory.ladder_table(1)}
    page = tmp_path / "page.md"
    page.write_text("".join(f"{name}\n<!-- begin {name} -->\nold\n<!-- end {name} -->\nafter\n" for name in tables))
    theory.update_page(page, tables, "larl report theory")
    text = page.read_text()
    assert "old" not in text
    assert text.count("after") == 2
    ladder = rows(text, "ladder")
    assert list(ladder) == list(rows((ROOT / "docs" / "theory.md").read_text(), "ladder"))
    unit = 60 * random_regret(world := steady_start(larl.worlds.paper(1)))
    expected = regret_bound(world, theory.LOOKBACK, 60, delta=theory.DELTA).total / unit
    assert float(ladder["… gap at most its largest value (`regret_bound`)"][0]) == pytest.approx(expected, rel=0.01)
    theory.update_page(page, tables, "larl report theory")
    assert page.read_text() == text
    with pytest.raises(larl.InvalidValue, match="markers"):
        theory.update_page(page, {"missing": ""}, "larl report theory")


def test_page_shows_certificates_below_random_choice():
    ladder = rows((ROOT / "docs" / "theory.md").read_text(), "ladder")
    values = {name: [float(cell.replace(",", "")) for cell in cells] for name, cells in list(ladder.items())[2:]}
    horizons = dict(zip(theory.LADDER, range(5), strict=True))
    assert values["certificate: LARL's regressions"][horizons[2_000]] < 1.0
    assert values["certificate: LARL's regressions, R unknown"][horizons[2_000]] < 1.0
    assert values["certificate: one latent state, signs of β and μ unknown"][horizons[200]] < 1.0
    assert values["… best s for the horizon"][horizons[1_000_000]] > 1.0
    for column in range(5):
        bounds = [cells[column] for name, cells in values.items() if name not in ("**measured regret**", "floor")]
        assert min(bounds) >= values["**measured regret**"][column] - 0.005
