"""Run the notebooks of docs/ and write their outputs: `make notebooks`.

python -m tests.notebooks [NAME …]    NAME: docs/notebooks/1-drifting-rewards.ipynb; all by default
"""

import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
LONG_NUMBER = re.compile(r"-?\d+\.\d{8,}(e[-+]?\d+)?")
TIMEOUT = 600  # seconds for a cell, which may have to compile first


def run(path: Path, folder: Path) -> Any:
    """Return the notebook with the outputs that its cells have now, if they run in `folder`."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    return notebook


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
        nbformat.write(run(path, path.parent), path)
        print(f"{path.name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
