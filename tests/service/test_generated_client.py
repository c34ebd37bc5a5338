"""A client that is generated from /openapi.json: it is complete, its names are plain, and it works."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.optional import OPENAPI
from tests.service.openapi import DESCRIPTION
from tests.service.running import running

SCRIPT = Path(__file__).with_name("generated_client.py")
OPERATIONS = [each for of in DESCRIPTION["paths"].values() for each in of.values()]


def test_operations_have_plain_names() -> None:
    names = [each["operationId"] for each in OPERATIONS]
    assert {"decide", "list_rewards", "create_study", "record_reward"} <= set(names)
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+){0,2}", name)] == []


def test_no_generated_name_stands_for_two_things() -> None:
    """Generators call a field's own enum by its schema and field: Reward.status is RewardStatus, if it has no name."""
    schemas = DESCRIPTION["components"]["schemas"]
    inline = {
        f"{name}{''.join(part.title() for part in field.split('_'))}"
        for name, schema in schemas.items()
        for field, of in schema.get("properties", {}).items()
        if any("enum" in each for each in (of, *of.get("anyOf", ())))
    }
    assert inline & set(schemas) == set()


@pytest.mark.needs("openapi")
def test_a_generated_client_calls_every_operation(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'study.db'}", create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    description, options = tmp_path / "openapi.json", tmp_path / "options.json"
    description.write_text(json.dumps(DESCRIPTION))
    options.write_text(json.dumps({"post_hooks": []}))
    out = tmp_path / "decisions_client"
    words = ["generate", "--meta", "none", "--fail-on-warning", "--path", description, "--output-path", out]
    command = [OPENAPI, "-m", "openapi_python_client", *map(str, words), "--config", str(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with running(tmp_path, "--timeout", "60") as address:
        command = [OPENAPI, str(SCRIPT), str(tmp_path), address, token]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {each["operationId"] for each in OPERATIONS}
    unparsed = {name for name, answer in found.items() if answer["type"] in ("NoneType", "ProblemDetails")}
    assert unparsed == {"resolve_issue"}  # there is no issue
    assert (found["resolve_issue"]["type"], found["resolve_issue"]["value"]["status"]) == ("ProblemDetails", 404)
    assert found["list_rewards"]["type"] == "ListPageRewardRecord"
    assert found["log_out"]["value"] == 204
    assert found["export_study"]["value"].startswith("seq,unit,")
