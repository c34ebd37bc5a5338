"""The code in the documentation runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(path: Path) -> str:
    """All Python of a page, one block after the other."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M))


@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/agent.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    code = blocks(ROOT / page)
    assert "larl." in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "agent.json").exists()


def links(path: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page: str) -> None:
    for link in links(ROOT / page):
        assert (ROOT / page).parent.joinpath(link).exists(), link
