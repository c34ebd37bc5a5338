"""The service is killed a few times under load; `python -m tests.service.torture` does it hundreds of times."""

from pathlib import Path

import pytest

from tests.service.torture import Summary, torture

pytestmark = pytest.mark.timing


def _kept(found: Summary) -> None:
    print(found.line())
    assert found.kept, (found.line(), found.examples)
    assert found.acknowledged > 0
    assert found.asked_again > 0, "no kill came between a request and its answer"


def test_a_killed_service_kept_its_word_in_a_file(sqlite: str, tmp_path: Path) -> None:
    _kept(torture(sqlite, tmp_path, kills=6, seed=1))


def test_two_processes_of_which_one_or_the_other_is_killed_keep_their_word(postgres: str, tmp_path: Path) -> None:
    _kept(torture(postgres, tmp_path, kills=4, seed=2, processes=2))
