"""Links, notebooks and formulas are converted for the site."""

import json
import posixpath
import re
from typing import Any

import pytest
from tools.site import links as site_links
from tools.site.links import rewrite
from tools.site.notebook_pages import to_markdown
from tools.site.typeset import typeset

from tests.documents import PAGES, ROOT, links

TABLE = "<style>\ntr {}\n</style>\n<table border='1' class='x'>\n\n<tr class='x'><td colspan='2'></td></tr>\n</table>"
MADE = {*site_links.PAGES.values(), "examples.md", "rest.md"}  # pages without a file in docs/


@pytest.mark.parametrize(
    ("file", "page", "link", "result"),
    [
        ("docs/agent.md", "agent.md", "cohort.md#files", "cohort.md#files"),
        ("docs/agent.md", "agent.md", "#files", "#files"),
        ("docs/agent.md", "agent.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/deploy.md", "deploy.md", "../CHANGELOG.md", "changelog.md"),
        ("docs/api/extending.md", "api/extending.md", "../../CONTRIBUTING.md#tests", "../contributing.md#tests"),
        ("docs/rehearse.md", "rehearse.md", "../src/larl/examples/study.toml", "examples.md#studytoml"),
        ("docs/index.md", "index.md", "notebooks/first.ipynb", "notebooks/first.md"),
        ("docs/index.md", "index.md", "images/regret.png", "images/regret.png"),
        ("CONTRIBUTING.md", "contributing.md", "DESIGN.md", "design.md"),
        ("DESIGN.md", "design.md", "docs/theory.md#7-the-regret-floor", "theory.md#7-the-regret-floor"),
        ("docs/developers.md", "developers.md", "../README.md", "index.md"),
    ],
)
def test_link_leads_to_page(file: str, page: str, link: str, result: str) -> None:
    assert rewrite(f"see [it]({link}).", file, page) == f"see [it]({result})."


@pytest.mark.parametrize("file", [page for page in [*PAGES, "DESIGN.md", "CHANGELOG.md"] if page != "README.md"])
def test_every_link_of_a_page_leads_to_a_page_or_file(file: str) -> None:
    page = site_links.PAGES.get(file, file.removeprefix("docs/"))
    for link in links(file):
        target = rewrite(f"[it]({link})", file, page)[5:-1].partition("#")[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        exists = any((ROOT / "docs" / each).exists() for each in (path, path.removesuffix(".md") + ".ipynb"))
        assert not target or path in MADE or exists, link


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4})


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_notebook_becomes_markdown() -> None:
    text = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        code("print(1)\n2", {"output_type": "stream", "text": ["1\n"]}, shown({"text/plain": "2"})),
        code("plot()", shown({"image/png": "iVBOR\nw0=\n", "text/plain": "<Figure>"})),
        code("table", shown({"text/html": TABLE, "text/plain": "a table"})),
        code("'```'", {"output_type": "error", "ename": "ValueError", "evalue": "no"}),
        code(""),
    )
    assert to_markdown(text, "it.ipynb").split("\n\n") == [
        "# Title",
        "Text.",
        '<p class="download"><a href="it.ipynb" download>Download this notebook</a></p>',
        "```python\nprint(1)\n2\n```",
        "```text\n1\n```",
        "```text\n2\n```",
        "```python\nplot()\n```",
        "![output of the cell above](data:image/png;base64,iVBORw0=)",
        "```python\ntable\n```",
        "<div class=\"output\">\n<table>\n<tr><td colspan='2'></td></tr>\n</table>\n</div>",
        "````python\n'```'\n````",
        "```text\nValueError: no\n```\n",
    ]


def shown(data: dict[str, str]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("z_t", "z<sub>t</sub>"),
        ("Σ_{j≤k} γ_j z̃_{t−j}", "Σ<sub>j≤k</sub> γ<sub>j</sub> z̃<sub>t−j</sub>"),
        ("Cz̃_t, floor_t, sd_a", "Cz̃<sub>t</sub>, floor<sub>t</sub>, sd<sub>a</sub>"),
        ("β_a²σ_r²", "β<sub>a</sub>²σ<sub>r</sub>²"),
        ("c_{a_t}ᵀ", "c<sub>a<sub>t</sub></sub>ᵀ"),
        ("M^s, (x)^{−1/2}", "M<sup>s</sup>, (x)<sup>−1/2</sup>"),
        ("max_a μ_a, ‖x‖_V", "max<sub>a</sub> μ<sub>a</sub>, ‖x‖<sub>V</sub>"),
        ("σ_max(Γ), UCB_a, Pβ_a", "σ<sub>max</sub>(Γ), UCB<sub>a</sub>, Pβ<sub>a</sub>"),
        ("run_block, x_y_z, larl_client, mu_low", "run_block, x_y_z, larl_client, mu_low"),
        ("<code>z_t</code> <a href='#z_t'>z_t</a>", "<code>z_t</code> <a href='#z_t'>z<sub>t</sub></a>"),
        ("<h2 id='z_t'>z_t</h2>", "<h2 id='z_t'>z_t</h2>"),
    ],
)
def test_formula_is_set(text: str, result: str) -> None:
    assert typeset(f"<p>{text}</p>") == f"<p>{result}</p>"


def test_indented_block_is_a_formula_and_fenced_block_is_not() -> None:
    block = "<pre><span></span><code>r_t = 1\n</code></pre></div>"
    assert typeset(f'<div class="language-text highlight">{block}') == '<div class="formula">r<sub>t</sub> = 1\n</div>'
    fenced = f'<div class="language-output highlight">{block}'
    assert typeset(fenced) == fenced


def test_cells_get_a_class_by_length() -> None:
    row = "<table><tr><td>1.215 ± 0.012</td><td>k = 1, stationary</td><td>" + "word " * 20 + "</td></tr></table>"
    assert re.findall(r'class="(\w+)"', typeset(row)) == ["short", "text", "long"]


def test_first_column_stays_in_view_if_there_are_many_columns_and_it_is_narrow() -> None:
    def classes(first: str, columns: int) -> list[str]:
        row = f"<tr>\n<td>{first}</td>" + "<td>1</td>" * (columns - 1) + "</tr>"
        return re.findall(r'class="([\w ]+)"', typeset(f"<table>{row * 2}</table>"))

    assert classes("Auto", 6) == ["short key", *["short"] * 5] * 2
    assert classes("Auto", 5) == ["short"] * 10
    assert classes("a long name of a row, " * 3, 6) == ["long", *["short"] * 5] * 2
    assert "key" not in typeset("<table><tr><th colspan='2'>k</th></tr><tr>" + "<td>1</td>" * 6 + "</tr></table>")


def test_figure_is_a_link_to_its_file_but_an_embedded_image_is_not() -> None:
    figure = '<img alt="Regret" src="images/regret.png" />'
    link = '<a class="figure" href="images/regret.png" title="Open in full size">'
    assert typeset(f"<p>{figure}</p>") == f"<p>{link}{figure}</a></p>"
    embedded = '<p><img alt="" src="data:image/png;base64,iVBO" /></p>'
    assert typeset(embedded) == embedded


def test_type_without_a_description_has_no_dash() -> None:
    item = '<li><code>UnitInfo</code>\n –\n <div class="doc-md-description">\n{}\n</div></li>'
    assert typeset(item.format("")) == "<li><code>UnitInfo</code></li>"
    assert typeset(item.format("<p>A unit.</p>")) == item.format("<p>A unit.</p>")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("k = 1 and 3.2 ± 0.1", "k\u00a0=\u00a01 and 3.2\u00a0±\u00a00.1"),
        ("5 ms, 5 steps", "5\u00a0ms, 5 steps"),
        ("name = 1, x = y", "name = 1, x = y"),
        ("<code>larl compare --out x-y</code>", '<code>larl compare <span class="option">--out</span> x-y</code>'),
        ("<pre><code>larl --out</code></pre>", "<pre><code>larl --out</code></pre>"),
    ],
)
def test_lines_do_not_end_inside_a_number_or_an_option(text: str, result: str) -> None:
    assert typeset(f"<p>{text}</p>") == f"<p>{result}</p>"


def test_letter_with_a_mark_in_a_formula_is_set_in_the_font_of_text() -> None:
    block = '<div class="language-text highlight"><pre><span></span><code>θ̂ − θ</code></pre></div>'
    assert typeset(block) == '<div class="formula"><span class="accent">θ̂</span> − θ</div>'


def test_cells_of_text_have_the_names_of_their_columns() -> None:
    def labels(last: str, columns: int = 3) -> list[str]:
        cells = [f"<td>{text}</td>" for text in ["UCB", *["1"] * (columns - 2), last]]
        head = "".join(f"<th>head {i}</th>" for i in range(columns))
        table = typeset(f"<table><thead><tr>{head}</tr></thead><tbody><tr>{''.join(cells)}</tr></tbody></table>")
        found = re.findall(r'data-label="([^"]*)"', table)
        assert ("<table data-stack>" in table) == bool(found)
        return found

    assert labels("a sentence " * 6) == ["head 0", "head 1", "head 2"]
    assert labels("3.2 ± 0.1") == []
    assert labels("a sentence " * 6, columns=2) == []
    assert labels("a sentence " * 6, columns=6) == []


def test_names_of_indices_are_in_the_row_of_the_columns() -> None:
    def head(*rows: str) -> str:
        table = "<table><thead>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</thead></table>"
        return to_markdown(
            notebook({"cell_type": "markdown", "source": "#"}, code("x", shown({"text/html": table}))), "n"
        )

    assert "<tr><th>policy</th><th>mean</th></tr></thead>" in head("<th></th><th>mean</th>", "<th>policy</th><th></th>")
    assert head("<th>a</th><th>b</th>", "<th>c</th><th></th>").count("<tr>") == 2
