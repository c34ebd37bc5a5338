"""In a notebook, figures are images and progress is one line that ends at 100%."""

import base64
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """
import larl
import pandas as pd
from larl import worlds
policies = {"UCB": larl.UCB(), "random": larl.Random()}
"""
CELLS = [
    SETUP,
    "result = larl.compare(policies, worlds.paper(1), horizon=2000, trials=2000, keep='summary', progress=True)",
    "result.plot_regret()",
    "result.plot_wins()",
    "larl.compare(policies, worlds.paper(1), horizon=5, trials=5, progress=False).plot_regret()",
    "larl.compare(policies, worlds.paper(1), horizon=0, trials=5, progress=True)",
    "worlds.paper(1)",
    "larl.LARL(s=5)",
    "result",
    "larl.Agent(larl.UCB(), arms=['<off>', 'on']).decide()",
    "larl.diagnose(pd.DataFrame({'t': range(12), 'a': [0, 1] * 6, 'r': range(12)}), progress=False)",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """Run the notebook and return the outputs of each cell."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.cells[5].metadata["tags"] = ["raises-exception"]
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    nbformat.write(notebook, folder / "run.ipynb")
    return [cell.outputs for cell in notebook.cells]


@pytest.mark.parametrize("cell", [2, 3, 4])
def test_figure_is_one_image(outputs, cell):
    (output,) = outputs[cell]
    image = base64.b64decode(output["data"]["image/png"])
    assert image.startswith(b"\x89PNG")
    assert len(image) > 5_000


def test_progress_is_one_line_that_ends_at_100_percent(outputs):
    (output,) = outputs[1]
    assert output["output_type"] == "display_data"
    text = output["data"]["text/plain"]
    assert text.startswith("100%  ")
    assert " left" not in text
    assert "\n" not in text


def test_refused_comparison_shows_no_progress(outputs):
    (output,) = outputs[5]
    assert output["output_type"] == "error"
    assert output["ename"] == "InvalidValue"


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        (6, ["LatentAR", "<td>gammas</td><td>(0.9,)</td>"]),
        (7, ["LARL", "<td>s</td><td>5</td>", "<td>alpha</td><td>1.0</td>"]),
        (8, ["2 policies, 2000 trials", "<th>UCB</th>", "<th>mean</th>"]),
        (9, ["Decision of step 0", "<td>&lt;off&gt;</td><td>1</td><td>chosen</td>", "<td>on</td><td>0</td><td></td>"]),
        (10, ["12 rewards of 1 unit", "<td>too little data</td>"]),
    ],
)
def test_object_is_shown_as_a_table(outputs, cell, texts):
    (output,) = outputs[cell]
    html = output["data"]["text/html"]
    for text in texts:
        assert text in html
    assert "<off>" not in html
