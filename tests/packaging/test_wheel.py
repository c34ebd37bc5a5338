"""The wheel and the source distribution are complete: all commands work in an empty folder from the installed wheel."""

import ast
import json
import re
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import larl
from tests.packaging.installed import ROOT, Installed, build

PACKAGE = ROOT / "src" / "larl"
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}  # the same code without the time to compile it
pytestmark = pytest.mark.timing


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution, and the wheel that was built from it."""
    return build(tmp_path_factory.mktemp("built"), ROOT)


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


def metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def source_files() -> set[str]:
    """Return the files of the package, relative to src."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in found}


def test_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    information = f"larl-{larl.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(information)} == source_files()
    assert {f"{information}{name}" for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")} <= names


@pytest.mark.long
def test_wheel_of_source_distribution_equals_wheel_of_source_tree(wheel, tmp_path):
    (other,) = build(tmp_path, ROOT, "--wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(other) as two:
        assert {each.filename: each.CRC for each in one.infolist()} == {
            each.filename: each.CRC for each in two.infolist()
        }


def test_source_distribution_has_tests_and_no_built_files(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CITATION.cff", "LICENSE", "Makefile", "constraints.txt", "tests/conftest.py", ".ci/run"} <= names
    assert not [name for name in names if re.search(r"__pycache__|\.pyc$|\.nb[ic]$", name)]


def test_metadata_states_licence_and_versions(wheel):
    found = metadata(wheel)
    assert (found["Name"], found["Version"], found["License-Expression"]) == ("larl", larl.__version__, "MIT")
    assert not [each for each in found.get_all("Classifier") if each.startswith("License ::")]  # PEP 639
    assert found.get_payload().startswith("# larl")


def imported(files: Iterable[Path]) -> set[str]:
    """Return the other packages that files import, also in functions; those for type checkers are left out."""
    names = set()
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        typing_only = {
            id(child)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for child in ast.walk(node)
        }
        for node in ast.walk(tree):
            if id(node) in typing_only:
                continue
            if isinstance(node, ast.Import):
                names |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"larl"}


def test_every_import_is_a_declared_dependency(wheel):
    declared = {Requirement(each).name.lower() for each in metadata(wheel).get_all("Requires-Dist")}
    providers = packages_distributions()
    undeclared = {
        name
        for name in imported(PACKAGE.rglob("*.py"))
        if not {each.lower() for each in providers.get(name, [name])} & declared
    }
    # llvmlite comes with numba, anyio, pydantic and starlette with fastapi, dask with distributed.
    # IPython is used only inside a notebook.
    assert undeclared <= {"IPython", "anyio", "dask", "llvmlite", "pydantic", "starlette"}


def test_package_is_that_of_the_wheel(installed):
    code = "import larl, importlib.metadata as m; print(larl.__file__, m.distribution('larl').locate_file(''))"
    assert all(Path(path).is_relative_to(installed.site) for path in installed.python(code).split())
    assert installed.larl("--version") == f"larl {larl.__version__}\n"


def test_compiled_code_runs(installed, tmp_path):
    code = "import larl; print(larl.Agent(larl.RoundRobin(), 2).decide().arm)"  # quick to compile
    cache = tmp_path / "cache"
    assert installed.python(code, XDG_CACHE_HOME=str(cache)).strip() == "0"
    assert list(cache.rglob("*.nbi"))


@pytest.mark.long
def test_comparison_of_packaged_example(installed):
    installed.larl("examples", "study")
    file = installed.folder / "study.toml"
    text = file.read_text(encoding="utf-8")
    smaller = re.sub(r"(?m)^trials = \d+", "trials = 2", re.sub(r"(?m)^horizon = \d+", "horizon = 6", text))
    assert smaller != text
    file.write_text(smaller, encoding="utf-8")
    installed.larl("compare", "study.toml", "--out", "results", **INTERPRETED)
    assert {"result.nc", "regret.png"} <= {each.name for each in (installed.folder / "results").iterdir()}


@pytest.mark.long
def test_diagnosis_writes_its_page(installed):
    rows = "".join(f"{step},{step % 2},{(step * 7 % 5) / 4}\n" for step in range(12))
    (installed.folder / "log.csv").write_text("t,a,r\n" + rows, encoding="utf-8")
    assert "too little data" in installed.larl("diagnose", "log.csv", "--out", "diagnosis", **INTERPRETED)
    page = (installed.folder / "diagnosis" / "diagnosis.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert json.loads((installed.folder / "diagnosis" / "diagnosis.json").read_text(encoding="utf-8"))


@pytest.mark.long
def test_service_answers_and_serves_its_page(installed):
    token = installed.larl("token", "create", "--role", "admin", "--storage", "sqlite:///study.db").strip()
    with installed.serving() as address:

        def get(path: str, **headers: str) -> bytes:
            with urllib.request.urlopen(urllib.request.Request(address.rstrip("/") + path, headers=headers)) as answer:
                return answer.read()

        assert json.loads(get("/v1/health"))["status"] == "ok"
        assert "/v1/studies" in json.loads(get("/openapi.json"))["paths"]
        assert json.loads(get("/v1/studies", Authorization=f"Bearer {token}")) is not None
        for file in (PACKAGE / "service" / "page").iterdir():
            assert get("/" if file.name == "index.html" else f"/{file.name}") == file.read_bytes()
