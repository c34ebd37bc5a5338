"""The notebooks of docs/ run, and print what they show."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks import FOLDER, run, texts

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 7


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    return dict(zip(NOTEBOOKS, run(NOTEBOOKS, tmp_path_factory.mktemp("notebooks")), strict=True))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_its_outputs(path: Path, executed: dict[Path, Any]):
    shown = nbformat.read(path, as_version=4)
    assert texts(executed[path]) == texts(shown), "make notebooks writes the outputs again"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_a_title_and_no_control_characters(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    for cell in cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"
            assert "\x1b" not in str(output)
            assert output.get("name") != "stderr"
