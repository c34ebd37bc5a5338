"""Write the REST reference, a Markdown page, from the OpenAPI description of the service."""

import json
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
INTRODUCTION = """# REST reference

Every operation of the [decision service](service.md), generated from its OpenAPI description, which a running service
publishes at `/openapi.json`. [The decision service](service.md) explains what the operations do and which permission
each needs; [the Python client](client.md) calls them.

- A request has the header `Authorization: Bearer TOKEN` unless the operation says otherwise.
- Bodies of requests and responses are JSON. An unknown field in a request is refused.
- An error has the fields of [ProblemDetails](#problemdetails); [Errors](service.md#errors) has the reason
  for each status.
"""
ORDER = ["studies", "units", "decisions", "issues", "service", "session"]


def page(description: Schema) -> str:
    """Return the reference as Markdown: a table of operations, each operation by tag, and the schemas."""
    operations = [
        (method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    tags = sorted({tag for _, _, operation in operations for tag in operation["tags"]}, key=_position)
    parts = [INTRODUCTION, *_table(["operation", "request", "does"], [_overview(*each) for each in operations])]
    for tag in tags:
        parts.append(f"\n## {tag.capitalize()}")
        for method, path, operation in operations:
            if tag in operation["tags"]:
                parts.extend(_operation(method, path, operation, description))
    parts.append("\n## Schemas")
    for name, schema in sorted(description["components"]["schemas"].items()):
        parts.extend(_schema(name, schema))
    return "\n".join(parts) + "\n"


def _position(tag: str) -> tuple[int, str]:
    return (ORDER.index(tag) if tag in ORDER else len(ORDER), tag)


def _overview(method: str, path: str, operation: Schema) -> list[str]:
    name = operation["operationId"]
    return [f"[{name}](#{name})", f"`{method} {path}`", _prose(operation["description"])]


def _operation(method: str, path: str, operation: Schema, description: Schema) -> Iterator[str]:
    """Yield the heading, the parameters, the body and the responses of an operation."""
    yield f"\n### {operation['operationId']}\n\n`{method} {path}`\n\n{_prose(operation['description'])}"
    if operation.get("security") == [{}]:
        yield "\nNo token is needed."
    rows = [
        [f"`{each['name']}`", each["in"], *_value(each["schema"], each.get("required", False))]
        for each in operation.get("parameters", [])
    ]
    if rows:
        yield "\n**Parameters**\n"
        yield from _table(["name", "in", "type", "default", "meaning"], rows)
    if "requestBody" in operation:
        body = _content(operation["requestBody"])
        yield f"\n**Body**: {_type(body)}\n"
        yield from _fields(_resolve(body, description))
    yield "\n**Responses**\n"
    yield from _responses(operation["responses"])


def _responses(responses: Schema) -> Iterator[str]:
    """Yield a line for each status; errors with the usual body share one."""
    usual = []
    for status, response in sorted(responses.items()):
        schemas = [_type(each["schema"]) for each in response.get("content", {}).values()]
        if schemas == [_reference("ProblemDetails")]:
            usual.append(f"`{status}`")
        elif schemas:
            yield f"- `{status}`: {schemas[0]} ({', '.join(f'`{each}`' for each in response['content'])})"
        else:
            yield f"- `{status}`: {_prose(response['description']).rstrip('.')}; no body"
    if usual:
        yield f"- {', '.join(usual)}: {_reference('ProblemDetails')} (`application/problem+json`)"


def _schema(name: str, schema: Schema) -> Iterator[str]:
    yield f"\n### {_title(name)}"
    if "description" in schema:
        yield f"\n{_prose(schema['description'])}"
    if "enum" in schema:
        yield f"\nOne of {', '.join(f'`{value}`' for value in schema['enum'])}."
    if "properties" in schema:
        yield ""
        yield from _fields(schema)


def _fields(schema: Schema) -> Iterator[str]:
    """Yield the table of an object's fields."""
    needed = schema.get("required", [])
    rows = [[f"`{name}`", *_value(field, name in needed)] for name, field in schema.get("properties", {}).items()]
    yield from _table(["field", "type", "default", "meaning"], rows)


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table, without columns that are empty in every row."""
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    for row in [head, ["---"] * len(head), *rows]:
        yield "| " + " | ".join(row[i].replace("|", "\\|") for i in kept) + " |"


def _resolve(schema: Schema, description: Schema) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    return description["components"]["schemas"][name] if name else schema


def _content(body: Schema) -> Schema:
    (content,) = body["content"].values()
    return content["schema"]


def _title(name: str) -> str:
    """Return the name of a schema; `ListPage_Issue_` becomes `ListPage of Issue`."""
    return name.strip("_").replace("_", " of ")


def _reference(name: str) -> str:
    return f"[{_title(name)}](#{_title(name).lower().replace(' ', '-')})"


def _type(schema: Schema) -> str:
    """Return the type of a value in words, with its limits."""
    if "$ref" in schema:
        return _reference(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    kind = schema.get("type", "any JSON value")
    if kind == "array":
        return f"list{_limits(schema, 'minItems', 'maxItems')} of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    if kind == "object" and "patternProperties" in schema:
        return "object of " + " or ".join(_type(each) for each in schema["patternProperties"].values())
    return f"{kind}{_limits(schema, 'minimum', 'maximum')}{_limits(schema, 'minLength', 'maxLength', ' characters')}"


def _limits(schema: Schema, low: str, high: str, unit: str = "") -> str:
    """Return the accepted range; limits beyond what a number needs are left out."""
    least, most = schema.get(low), schema.get(high)
    if most is not None and abs(most) >= 1e15:
        least, most = None if least is not None and least <= -1e15 else least, None
    if least is None and most is None:
        return ""
    if most is None:
        return f" ≥ {least:,.10g}{unit}"
    return f" ≤ {most:,.10g}{unit}" if least is None else f" {least:,.10g} to {most:,.10g}{unit}"


def _value(schema: Schema, required: bool) -> list[str]:
    """Return the type, default and meaning of a value."""
    default = "required" if required else f"`{json.dumps(schema.get('default'))}`"
    return [_type(schema), default, _meaning(schema)]


def _meaning(schema: Schema) -> str:
    """Return the description of a value, with an example if there is one."""
    variants = [schema, *schema.get("anyOf", [])]
    text = next((_prose(each["description"]) for each in variants if "description" in each), "")
    example = next((each["examples"][0] for each in variants if each.get("examples")), None)
    if example is not None:
        text = f"{text} Example: `{json.dumps(example, ensure_ascii=False)}`.".strip()
    return text


def _prose(text: str) -> str:
    """Return a description on one line of Markdown."""
    return " ".join(text.replace("``", "`").split())
