"""Run the notebooks of docs/ and write their outputs: `make notebooks`.

python -m tests.notebooks [NAME …]    NAME: docs/notebooks/1-drifting-rewards.ipynb; all by default
"""

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
LONG_NUMBER = re.compile(r"-?\d+\.\d{8,}(e[-+]?\d+)?")
TIMEOUT = 600  # seconds for a cell, which may have to compile first


def run(paths: Sequence[Path], folder: Path) -> list[Any]:
    """Return notebooks with the outputs that their cells have now, if they run in `folder`, one after the other.

    They share a process, which starts each with an empty namespace: most of their time is that of imports.
    """
    notebooks = [nbformat.read(path, as_version=4) for path in paths]
    together = nbformat.v4.new_notebook(metadata=notebooks[0].metadata)
    for each in notebooks:
        together.cells += [nbformat.v4.new_code_cell("%reset -f"), *each.cells]
    for cell in together.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(together, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()
    for each in notebooks:
        for number, cell in enumerate((cell for cell in each.cells if cell.cell_type == "code"), 1):
            cell.metadata.pop("execution", None)  # times
            cell.execution_count = number
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = number
    return notebooks


def texts(notebook: Any) -> list[list[str]]:
    """Return the text outputs of every code cell, printed text and values, with numbers of at most 8 digits.

    The last digits of a number depend on the processor and on its mathematical library.
    """
    return [
        [
            LONG_NUMBER.sub(
                lambda found: f"{float(found[0]):.8g}",
                output.text if output.output_type == "stream" else output.data["text/plain"],
            )
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> None:
    """Run notebooks in place."""
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        started = time.monotonic()
        (notebook,) = run([path], path.parent)
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
