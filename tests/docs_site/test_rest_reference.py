"""The REST reference has every operation, parameter, field, default and status of the OpenAPI description."""

import json
import re

import pytest
from tools.site.rest_reference import page

from tests.documents import ROOT
from tests.service.openapi import DESCRIPTION

TEXT = page(DESCRIPTION)
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^### ", TEXT, flags=re.M)[1:]}
OPERATIONS = {
    each["operationId"]: (method, path, each)
    for path, methods in DESCRIPTION["paths"].items()
    for method, each in methods.items()
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_section_of_operation_is_complete(name: str) -> None:
    method, path, operation = OPERATIONS[name]
    section = SECTIONS[name].partition("\n## ")[0]
    assert f"`{method.upper()} {path}`" in section
    for parameter in operation.get("parameters", []):
        assert f"| `{parameter['name']}` | {parameter['in']} |" in section
    for status in operation["responses"]:
        assert f"`{status}`" in section
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in body:
        schema = DESCRIPTION["components"]["schemas"][body["$ref"].rpartition("/")[2]]
        for field in schema["properties"]:
            assert f"| `{field}` |" in section


def test_every_schema_has_its_fields_and_values() -> None:
    for name, schema in DESCRIPTION["components"]["schemas"].items():
        section = SECTIONS[name.strip("_").replace("_", " of ")]
        for field in schema.get("properties", {}):
            assert f"| `{field}` |" in section, (name, field)
        for value in schema.get("enum", []):
            assert f"`{value}`" in section, (name, value)


def test_links_within_the_page_lead_to_headings() -> None:
    anchors = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", TEXT, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= anchors
    for target in re.findall(r"\]\(([^)#]+\.md)", TEXT):
        assert (ROOT / "docs" / target).exists(), target


def test_types_defaults_and_limits_are_in_words() -> None:
    schema = {
        "required": ["s"],
        "properties": {
            "s": {"type": "integer", "minimum": 0, "maximum": 10000.0},
            "a": {"anyOf": [{"type": "number", "maximum": 1e100, "minimum": -1e100}, {"type": "null"}]},
            "b": {"type": "array", "minItems": 2, "items": {"$ref": "#/components/schemas/ListPage_Issue_"}},
            "c": {"enum": ["x", "y"], "default": "x", "description": "A ``choice``.", "examples": ["y"]},
            "d": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 64}},
        },
    }
    text = page({"paths": {}, "components": {"schemas": {"Thing": schema}}})
    assert [line for line in text.splitlines() if line.startswith("| `")] == [
        "| `s` | integer 0 to 10,000 | required |  |",
        "| `a` | number or null | `null` |  |",
        "| `b` | list ≥ 2 of [ListPage of Issue](#listpage-of-issue) | `null` |  |",
        f'| `c` | `"x"` or `"y"` | `{json.dumps("x")}` | A `choice`. Example: `"y"`. |',
        "| `d` | object of string 1 to 64 characters | `null` |  |",
    ]
