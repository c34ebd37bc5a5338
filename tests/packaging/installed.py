"""larl as users install it: from a wheel, in a virtual environment of its own, without the source tree."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from tests.waiting import HANGS

ROOT = Path(__file__).parents[2]


def build(folder: Path, source: Path, *options: str) -> Path:
    """Build in a folder; without options a source distribution, and from it a wheel."""
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *options, str(source)], folder)
    return folder


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Return what a command prints. Nothing of the source tree is on the path."""
    done = subprocess.run(
        command, cwd=folder, env=environment(variables), capture_output=True, text=True, check=False, timeout=HANGS
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def environment(variables: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_", "LARL_"))}
    return kept | {"MPLBACKEND": "agg", "COLUMNS": "200"} | variables


class Installed:
    """A virtual environment with the wheel. Its dependencies are those of the tests, so that nothing is downloaded."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder / "venv", with_pip=False)
        self.bin, self.folder = folder / "venv" / "bin", folder / "empty"
        self.folder.mkdir()
        python = str(self.bin / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], folder)
        # A folder that a .pth file names is searched last. Its own .pth files (an editable larl has one) are ignored.
        site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
        paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (site / "dependencies.pth").write_text("\n".join(sorted(paths)) + "\n", encoding="utf-8")
        self.site = site

    def larl(self, *words: str, **variables: str) -> str:
        """Return what the installed command prints in an empty folder."""
        return run([str(self.bin / "larl"), *words], self.folder, **variables)

    def python(self, code: str, **variables: str) -> str:
        """Return what a program prints that imports the installed package."""
        return run([str(self.bin / "python"), "-I", "-c", code], self.folder, **variables)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve a new storage on a free port; yield the address."""
        command = [str(self.bin / "larl"), "serve", "--port", "0", "--storage", "sqlite:///study.db"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        limit = Timer(HANGS, process.kill)  # a service that says nothing would block the reading of its output
        limit.start()
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not (found := re.search(r"http://\S+", "".join(lines[-1:]))):
                lines.append(process.stdout.readline())
                assert lines[-1], f"the service did not start: {lines}"
            yield found[0]
        finally:
            limit.cancel()
            process.terminate()
            process.communicate(timeout=HANGS)
