"""The Python blocks and shell commands of README, CONTRIBUTING and docs/ run and print what the pages show."""

import io
import re
import shutil
import sqlite3
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from larl.cli import app
from larl.client import Client
from larl.policies import REGISTRY
from tests.documents import PAGES, ROOT, Command, anchors, commands, inline_commands, links, python_examples
from tests.service.sample_journal import write_sample
from tests.service.service_process import serving

# Commands that no test can run, by their beginning, with the reason.
NOT_RUN = {
    "pip install": "needs the network; the names of the extras are checked",
    "python3 -m venv /opt/larl": "installs the service for all users of a machine",
    "/opt/larl/bin/pip install": "needs the network; the names of the extras are checked",
    "useradd": "needs root",
    "sudo": "needs root",
    "kubectl": "needs Kubernetes",
    "docker": "needs a Docker engine",
    "echo": "writes the password of a database for Docker",
    "python cluster.py": "needs SLURM",
    "larl compare study.toml --store /shared/runs/one": "needs a Dask scheduler at that address",
}
# Python blocks that no test can run, by their first line.
PYTHON_NOT_RUN = {"# cluster.py": "needs SLURM"}
# Options that make a command quick.
QUICK = {
    "larl diagnose": ["--no-replay"],
    "larl rehearse": ["--units", "3", "--steps", "4"],
}
EXIT_CODES = {  # other than 0
    "larl replay sqlite:///changed.db": 3,
    "larl restore cut.gz": 2,
}
STUDY = """
horizon = 20
trials = 4
[worlds.drift]
paper = 1
[policies.LARL]
policy = "LARL"
[policies.LARL.grid]
s = [1, 2]
alpha = [0.5, 1.0]
"""


def matching(command: Command, table: dict[str, object]) -> str | None:
    return next((start for start in table if f"{command} ".startswith(f"{start} ")), None)


def write_logs(folder: Path) -> None:
    """Write the logs that the pages diagnose. Above 10 arms, replays leave out the policies that take longest."""
    draw, rows = np.random.default_rng(0), 60
    arms = draw.permutation(np.arange(rows) % 12)
    frame = pd.DataFrame({"t": np.arange(rows), "a": arms, "r": draw.normal(size=rows).round(3)})
    other = frame.rename(columns={"t": "when", "a": "message", "r": "steps"}).assign(person="p1")
    other.to_csv(folder / "log.csv.gz", index=False)
    frame["temperature"], frame["place"] = draw.normal(size=rows), draw.choice(["home", "work"], rows)
    frame.to_csv(folder / "log.csv", index=False)


def write_storages(folder: Path, source: Path) -> None:
    """Write a storage, and one in which a probability was changed."""
    for name in ("study.db", "changed.db"):
        shutil.copy(source, folder / name)
    with sqlite3.connect(folder / "changed.db") as connection:
        connection.execute("DROP TRIGGER no_update")
        changed = "replace(answer, '\"go\":0.9}', '\"go\":0.9000000000000001}')"
        connection.execute(f"UPDATE journal SET answer = {changed} WHERE seq = 7")
    connection.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage with every kind of row."""
    path = tmp_path_factory.mktemp("docs") / "study.db"
    write_sample(path)
    return path


class Shell:
    """Runs the commands of a page in the current folder; a service runs as a process until `close`."""

    def __init__(self) -> None:
        self.url, self.token = "http://127.0.0.1:8080", ""
        self._open = ExitStack()

    def close(self) -> None:
        self._open.close()

    def filled_in(self, text: str) -> str:
        """Replace the address, token, folders and date of the page by those of the test."""
        for shown, used in {
            "http://127.0.0.1:8080": self.url,
            "larl_…": self.token,
            "sqlite:////var/lib/larl": "sqlite:///.",
            "/backup/": "",
            "$(date +%F)": "2026-11-16",
        }.items():
            text = text.replace(shown, used)
        return text

    def serve(self, storage: str = "sqlite:///study.db", *options: str) -> None:
        if not self.token:
            self.run(Command(("larl", "token", "create", "--role", "admin", "--storage", storage), {}, None))
        self.url = self._open.enter_context(serving(storage, *options))

    def run(self, command: Command) -> None:
        if command.words[0] == "make":
            subprocess.run(["make", "-n", *command.words[1:]], cwd=ROOT, check=True, capture_output=True)
            return
        assert command.words[0] == "larl", f"neither run nor in NOT_RUN: {command}"
        words = [self.filled_in(word) for word in command.words[1:]]
        if words[0] == "serve":
            self.serve(words[words.index("--storage") + 1])
            return
        if "cut.gz" in words:
            Path("cut.gz").write_bytes(Path("study.backup.gz").read_bytes()[:-20])
        words += QUICK.get(f"larl {words[0]}", [])
        environment = {name: self.filled_in(value) for name, value in command.variables.items()}
        done = CliRunner().invoke(app, words, env=environment, catch_exceptions=False)
        code = EXIT_CODES.get(matching(command, dict(EXIT_CODES)) or "", 0)
        assert done.exit_code == code, f"{command}: exit code {done.exit_code}\n{done.output}"
        if words[:2] == ["token", "create"]:
            self.token = done.stdout.strip()
        elif words[:2] == ["examples", "study"]:
            Path("study.toml").write_text(STUDY, encoding="utf-8")  # smaller than the example
        if command.output is not None:
            assert same_text(done.output) == same_text(command.output), str(command)


PROGRESS = re.compile(r"^ *\d+%  .*(steps/s|left| in \d+:\d\d).*\n", re.MULTILINE)  # of commands that take two seconds


def same_text(output: str) -> str:
    """Return the output without line ends' spaces, durations and lines of progress."""
    return re.sub(r"\d+\.\d s\b", "… s", re.sub(r" +$", "", PROGRESS.sub("", output), flags=re.M)).strip()


def run_python(code: str) -> str:
    """Return what the code prints, in this process: a new one takes seconds to import what most pages use."""
    before = set(REGISTRY)
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    plt.close("all")
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
    return printed.getvalue()


@contextmanager
def clients_that_close() -> Iterator[None]:
    """Close the clients that a page leaves open: the connections of a program end with its process."""
    opened, create = list[Client](), Client.__init__

    def create_and_note(client: Client, *arguments: Any, **options: Any) -> None:
        create(client, *arguments, **options)
        opened.append(client)

    with patch.object(Client, "__init__", create_and_note):
        yield
    for client in opened:
        client.close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "200")
    shell = Shell()
    yield shell
    shell.close()


@pytest.mark.timing
@pytest.mark.parametrize("page", PAGES)
def test_commands_and_python_of_page_run(page: str, shell: Shell, recorded: Path, tmp_path: Path) -> None:
    write_logs(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    found = list(commands(page))
    if any("replay" in command.words for command in found):
        write_storages(tmp_path, recorded)
    if any(command.words[:2] == ("larl", "examples") for command in found):
        (tmp_path / "study.toml").unlink()
    for command in found:
        if not matching(command, dict(NOT_RUN)):
            shell.run(command)
    examples = [each for each in python_examples(page) if each.code.partition("\n")[0] not in PYTHON_NOT_RUN]
    needs_service = any("larl.Client(" in each.code for each in examples)
    if needs_service and not shell.token:
        shell.serve()
    if examples and page != "CONTRIBUTING.md":  # its policy is run below
        separator = "\x1e"
        blocks = [f"token = {shell.token!r}", *(shell.filled_in(each.code) for each in examples)]
        with clients_that_close():
            printed = run_python(f"\nprint({separator!r})\n".join(blocks)).split(f"{separator}\n")[1:]
        for each, output in zip(examples, printed, strict=True):
            if each.output is not None:
                assert same_text(output) == same_text(each.output), each.code
    if needs_service:
        with Client(shell.url, shell.token) as client:
            own = [each for each in client.decisions("sleep") if each.source != "history"]
            assert {(each.unit, each.reward) for each in own} == {("unit-17", 0.4)}


def test_policy_of_contributing_explores_all_arms_equally() -> None:
    # The draw that decides whether to explore and the draw of the arm share no bits.
    count = """
world = larl.LatentAR(gammas=[0.0], beta=[0.0] * 4, mu=[-1.0, -1.0, -1.0, 0.0])
arm = larl.compare({"it": EpsilonGreedy(0.25)}, world, horizon=400, trials=50, seed=1).arm.values.ravel()
print("explored", [int((arm == i).sum()) for i in range(3)])
"""
    printed = run_python(python_examples("CONTRIBUTING.md")[0].code + count)
    explored = [int(each) for each in re.findall(r"\d+", printed.splitlines()[-1])]
    expected = 400 * 50 * 0.25 / 4  # plays of each worse arm, apart from a few before the means are known
    assert all(abs(each - expected) < 5.0 * expected**0.5 + 50 for each in explored), explored


def test_tables_of_exceptions_have_no_unused_entry() -> None:
    shown = [command for page in PAGES for command in commands(page)]
    used = {matching(command, dict(NOT_RUN)) for command in shown}
    assert set(NOT_RUN) <= used
    assert set(EXIT_CODES) <= {matching(command, dict(EXIT_CODES)) for command in shown}
    first_lines = {each.code.partition("\n")[0] for page in PAGES for each in python_examples(page)}
    assert set(PYTHON_NOT_RUN) <= first_lines


def test_extras_to_install_exist() -> None:
    known = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    quoted = [text for page in PAGES for text in [*map(str, commands(page)), *inline_commands(page)] if "pip" in text]
    extras = {name for text in quoted for names in re.findall(r"\[([\w,]+)\]", text) for name in names.split(",")}
    assert extras
    assert extras <= known


@pytest.mark.parametrize("page", PAGES)
def test_quoted_commands_exist(page: str) -> None:
    """Commands in the text are not run; their names, options and files are checked."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    for text in [*inline_commands(page), *(str(each) for each in commands(page))]:
        program, *words = text.split()
        if program == "make":
            assert words[0] in targets, text
        elif program.startswith(".ci/"):
            assert (ROOT / program).exists(), text
        elif program == "python" and words[0].startswith("benchmarks/"):
            assert (ROOT / words[0]).exists(), text
        elif program == "larl":
            check_options(text, words)


def check_options(text: str, words: list[str]) -> None:
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):  # a group
        if not words:
            return
        assert words[0] in command.commands, text
        command = command.commands[words.pop(0)]
    known = {name for each in command.params for name in [*each.opts, *each.secondary_opts]}
    assert {word for word in words if word.startswith("--")} <= known, text


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_sections(page: str) -> None:
    for link in links(page):
        file, _, section = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        assert target.exists(), link
        assert not section or section in anchors(target), link
