"""Arbitrary valid and invalid requests get responses that the OpenAPI description allows, and no status 500.

LARL_EXAMPLES is the number of requests per operation: 1,000 in `make torture`.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

from larl.service.app import make_app
from larl.service.http.auth import Auth
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.measurements import save
from tests.service.openapi import DESCRIPTION, mounted_api

EXAMPLES = int(os.environ.get("LARL_EXAMPLES", "15"))
EXCLUDED = [positive_data_acceptance]  # JSON Schema cannot express valid policies and distinct arms
FOREIGN_TEXT = r"(Input|String|List|Dictionary|Value|Field) (should|error)|another value \(|Expecting .* at character -"
OPERATIONS = [(path, method) for path, of in DESCRIPTION["paths"].items() for method in of]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The description of a running service that has a study with a decision, and the headers of an admin."""
    folder: Path = tmp_path_factory.mktemp("interface")
    database = Database(f"sqlite:///{folder}/study.db", write=True, create=True)
    token = {"Authorization": f"Bearer {Auth(database).create('*', 'admin')}"}
    app = make_app(database, Settings(rate=1e9, read_rate=1e9))
    del mounted_api(app).openapi()["security"]  # a token is always sent here; test_auth.py tests requests without
    with TestClient(app, headers=token) as client:
        client.post("/v1/studies", json={"study": "sleep", "arms": ["a", "b"], "policy": {"policy": "UCB"}, "seed": 1})
        client.post("/v1/studies/sleep/decisions", json={"unit": "unit-17", "key": "1"})
        yield schemathesis.openapi.from_asgi("/openapi.json", app), token
    database.close()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_responses_match_the_description(described: Any, path: str, method: str) -> None:
    schema, token = described
    operation = schema[path][method]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]), st.data())
    def send(mode: GenerationMode, data: Any) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        response = case.call_and_validate(headers=token, excluded_checks=EXCLUDED)
        if response.status_code >= 400:
            assert not re.search(FOREIGN_TEXT, response.json()["detail"]), response.json()

    send()
    save("interface", operations=len(OPERATIONS), examples=EXAMPLES)
