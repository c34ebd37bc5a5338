"""A client generated from /openapi.json can call every operation."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.optional import OPENAPI
from tests.service.openapi import DESCRIPTION
from tests.service.service_process import serving_folder

SCRIPT = Path(__file__).with_name("generated_client.py")
OPERATIONS = [each for of in DESCRIPTION["paths"].values() for each in of.values()]


def test_operations_have_short_unique_names() -> None:
    names = [each["operationId"] for each in OPERATIONS]
    assert {"decide", "list_rewards", "create_study", "record_reward"} <= set(names)
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+){0,2}", name)] == []


def test_generated_names_are_unique() -> None:
    """Generators name an inline enum by schema and field: that of Reward.status would be RewardStatus, a schema."""
    schemas = DESCRIPTION["components"]["schemas"]
    inline = {
        f"{name}{''.join(part.title() for part in field.split('_'))}"
        for name, schema in schemas.items()
        for field, of in schema.get("properties", {}).items()
        if any("enum" in each for each in (of, *of.get("anyOf", ())))
    }
    assert inline & set(schemas) == set()


@pytest.mark.needs("openapi")
def test_generated_client_calls_every_operation(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'study.db'}", create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    description, options = tmp_path / "openapi.json", tmp_path / "options.json"
    description.write_text(json.dumps(DESCRIPTION))
    options.write_text(json.dumps({"post_hooks": []}))
    out = tmp_path / "decisions_client"
    arguments = ["generate", "--meta", "none", "--fail-on-warning", "--path", description, "--output-path", out]
    command = [OPENAPI, "-m", "openapi_python_client", *map(str, arguments), "--config", str(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with serving_folder(tmp_path, "--timeout", "60") as address:
        command = [OPENAPI, str(SCRIPT), str(tmp_path), address, token]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    responses = json.loads(done.stdout)
    assert set(responses) == {each["operationId"] for each in OPERATIONS}
    unparsed = {name for name, response in responses.items() if response["type"] in ("NoneType", "ProblemDetails")}
    assert unparsed == {"resolve_issue"}  # the issue does not exist
    refusal = responses["resolve_issue"]
    assert (refusal["type"], refusal["value"]["status"]) == ("ProblemDetails", 404)
    assert responses["list_rewards"]["type"] == "ListPageRewardRecord"
    assert responses["log_out"]["value"] == 204
    assert responses["export_study"]["value"].startswith("seq,unit,")
