from pathlib import Path

import pytest

from tests.cli.running import STUDY


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path
