"""`larl paper`: an interrupted run continues where it stopped."""

from tests.cli.running import run, started
from tests.waiting import HANGS

INTERRUPT_AFTER_FIRST_STUDY = """
import os, signal
from larl.simulation.result import Result
save = Result.save
def save_and_interrupt(result, path):
    saved = save(result, path)
    os.kill(os.getpid(), signal.SIGINT)  # Ctrl-C as soon as the first study is finished
    return saved
Result.save = save_and_interrupt
"""


def test_interrupted_paper_continues_where_it_stopped(tmp_path):
    arguments = ("paper", "--quick", "--trials", "4", "--out", tmp_path)
    with started(*arguments, setup=INTERRUPT_AFTER_FIRST_STUDY) as process:
        _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 130, errors
    assert [path.name for path in (tmp_path / "data").glob("*.nc")] == ["tuning-k1-0.nc"]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").glob("*.nc")}
    assert not (tmp_path / "report.html").exists()
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
    assert "report.html" in done.stdout
    assert "less regret than each baseline, baselines with the authors' settings (k = 10)" in " ".join(
        done.stdout.split()
    )
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
