"""Output folders are created before the work starts, and removed if it fails."""

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from larl._core.files import output_folder, write_atomically
from larl.cli import app

STUDY = 'horizon = 5\ntrials = 2\n[worlds.drift]\npaper = 1\n[policies.UCB]\npolicy = "UCB"\n'


def fail(path: Path) -> None:
    assert path.exists()
    raise ValueError(path)


def work(folder: Path, finished: bool) -> None:
    if finished:
        (folder / "done.txt").write_text("done")
    fail(folder)


def test_file_is_on_disk_before_it_has_its_name_and_then_the_name(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, Path.replace

    def record_sync(handle):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        steps.append("sync of the folder" if is_folder else f"sync of {os.fstat(handle).st_size} bytes")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", lambda self, target: (steps.append("rename"), replace(self, target))[1])
    write_atomically(tmp_path / "file", lambda path: path.write_text("12345"))
    assert steps == ["sync of 5 bytes", "rename", "sync of the folder"]


def test_empty_output_folder_and_its_parents_are_removed_on_failure(tmp_path):
    with pytest.raises(ValueError, match="deep"), output_folder(tmp_path / "new" / "deep") as folder:
        fail(folder)
    assert not (tmp_path / "new").exists()
    assert tmp_path.is_dir()


def test_finished_files_and_existing_folders_stay_on_failure(tmp_path):
    (tmp_path / "old").mkdir()
    for name in ("old", "half"):
        with pytest.raises(ValueError, match="run"), output_folder(tmp_path / name / "run") as folder:
            work(folder, finished=name == "half")
    assert (tmp_path / "old").is_dir()
    assert not (tmp_path / "old" / "run").exists()
    assert (tmp_path / "half" / "run" / "done.txt").exists()


def test_failed_write_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match=r"table"):
        write_atomically(tmp_path / "new" / "table.csv", fail)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("diagnose", "{log}", "--reward", "nothing"),
        ("diagnose", "{log}", "--unit", "a", "--no-unit"),
        ("diagnose", "{log}", "--context", "wind"),
        ("diagnose", "absent.csv"),
        ("compare", "{study}", "--cluster", "nowhere"),
        ("compare", "absent.toml"),
        ("rehearse", "absent.toml"),
    ],
)
def test_refused_command_leaves_no_folder(arguments, tmp_path):
    (tmp_path / "log.csv").write_text("t,a,r\n0,0,1\n1,1,2\n")
    (tmp_path / "study.toml").write_text(STUDY)
    formatted = [each.format(log=tmp_path / "log.csv", study=tmp_path / "study.toml") for each in arguments]
    done = CliRunner().invoke(app, [*formatted, "--out", str(tmp_path / "new" / "deep")])
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "new").exists()
