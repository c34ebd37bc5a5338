"""The package as a user meets it: the names of `larl`, `python -m larl`, and files about the project."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import yaml

import larl
from larl.policies import REGISTRY
from tests.test_docs import check_options

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def typed_names() -> set[str]:
    """Return the names that type checkers see in `larl`, except those of `larl.policies`."""
    tree = ast.parse(Path(larl.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.asname or each.name for node in imports for each in node.names} - {"*"}


def test_dir_has_public_names_only():
    policies = {name for name, policy in REGISTRY.items() if policy.__module__.startswith("larl.")}
    outside = set(REGISTRY) - policies  # of other tests
    assert set(dir(larl)) - outside == typed_names() | policies | {
        "Allocation",
        "Deployed",
        "Policy",
        "__version__",
        "gym",
    }
    assert policies <= set(larl.policies.__all__)


def test_star_import_has_the_same_names():
    names: dict[str, object] = {}
    exec("from larl import *", names)
    assert set(names) - {"__builtins__"} == set(dir(larl)) - {"__version__"}
    assert larl.register is larl.policies.register  # not listed, but there


def test_module_runs_as_command(tmp_path):
    done = [
        subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for command in ([sys.executable, "-m", "larl"], [sys.executable, "-c", "from larl.cli import main; main()"])
    ]
    assert done == [f"larl {larl.__version__}\n"] * 2


def test_versions_and_licence_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["version"] == larl.__version__ == str(citation["version"]) == metadata.version("larl")
    assert PROJECT["license"] == citation["license"] == "MIT"
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["preferred-citation"]["year"] == 2025


def test_python_versions_agree():
    """The classifiers, the workflow and the lower bound name the same versions."""
    prefix = "Programming Language :: Python :: 3."
    versions = [f"3.{each.removeprefix(prefix)}" for each in PROJECT["classifiers"] if each.startswith(prefix)]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["checks"]["strategy"]["matrix"]["python"] == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_commands_of_the_image_and_of_compose_exist():
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = [json.loads(words) for words in re.findall(r"^CMD (\[.*\])$", image, re.M)]
    found += [line.split()[:2] for line in re.findall(r"^RUN (larl .*)$", image, re.M)]
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    found += [
        services["larl"]["command"],
        re.search(r"larl backup .*", services["backup"]["command"][2])[0].split()[:-1],
    ]
    assert [words[:2] for words in found] == [["larl", each] for each in ("serve", "precompile", "serve", "backup")]
    for _, *words in found:
        check_options(str(words), list(words))
