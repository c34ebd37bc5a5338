"""A complete trial over HTTP, with lost and late rewards: it replays exactly, and lifejacket accepts its export."""

from pathlib import Path

from tests.cli.running import run_here
from tests.optional import LIFEJACKET
from tests.service.measurements import save, scaled
from tests.service.service_process import serving_folder
from tests.service.test_export import run_lifejacket_checks

EXAMPLE = Path(__file__).parents[2] / "src" / "larl" / "examples" / "rehearsal.toml"
UNITS, STEPS = scaled(6, 70), scaled(30, 140)


def run(*arguments: object) -> str:
    done = run_here(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_trial_replays_exactly_and_can_be_analysed(tmp_path: Path) -> None:
    storage, out = f"sqlite:///{tmp_path / 'study.db'}", tmp_path / "trial.csv"
    with serving_folder(tmp_path, "--no-auth") as address:
        run("rehearse", EXAMPLE, "--url", address, "--units", UNITS, "--steps", STEPS, "--out", tmp_path / "rehearsal")
    output = run("replay", storage)
    assert output.startswith("replayed exactly: ")
    assert f"{UNITS * STEPS:,} decisions" in output
    run("export", storage, "--study", "rehearsal", "--format", "lifejacket", "--fill", "0", "--out", out)
    assert len(out.read_text().splitlines()) == 1 + UNITS * STEPS
    if LIFEJACKET:
        done = run_lifejacket_checks(out)
        assert done.returncode == 0, done.stderr
    save("trial", units=UNITS, steps=STEPS, replayed=output.strip(), checked=bool(LIFEJACKET))
