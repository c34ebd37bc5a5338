"""A whole trial over HTTP, with what goes wrong in one: it replays exactly, and its export is accepted."""

import subprocess
from pathlib import Path

from tests.optional import LIFEJACKET
from tests.service.figures import amount, keep
from tests.service.running import LARL, running
from tests.service.test_export import checked

EXAMPLE = Path(__file__).parents[2] / "src" / "larl" / "examples" / "rehearsal.toml"
UNITS, STEPS = amount(6, 70), amount(30, 140)


def larl(*words: str | Path) -> str:
    done = subprocess.run([*LARL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_trial_replays_exactly_and_can_be_analysed(tmp_path: Path) -> None:
    storage, out = f"sqlite:///{tmp_path / 'study.db'}", tmp_path / "trial.csv"
    with running(tmp_path, "--no-auth") as address:
        larl("rehearse", EXAMPLE, "--url", address, "--units", UNITS, "--steps", STEPS, "--out", tmp_path / "rehearsal")
    said = larl("replay", storage)
    assert said.startswith("replayed exactly: ")
    assert f"{UNITS * STEPS:,} decisions" in said
    larl("export", storage, "--study", "rehearsal", "--format", "lifejacket", "--fill", "0", "--out", out)
    assert len(out.read_text().splitlines()) == 1 + UNITS * STEPS
    if LIFEJACKET:
        done = checked(out)
        assert done.returncode == 0, done.stderr
    keep("trial", units=UNITS, steps=STEPS, replayed=said.strip(), checked=bool(LIFEJACKET))
