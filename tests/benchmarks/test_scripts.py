"""Every benchmark script imports names that exist."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_every_script_can_be_imported():
    scripts = sorted(path.stem for path in FOLDER.glob("*.py"))
    code = "\n".join(f"import {script}" for script in scripts)
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_run_lists_only_scripts_that_exist():
    code = "import run; print(*run.SCRIPTS)"
    output = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True).stdout
    assert all((FOLDER / f"{script}.py").is_file() for script in output.split())
