"""What the shell knows of REST, from the OpenAPI document: `python -m tests.docs.rest_operations` writes it, a test
compares. A line an operation, so that each change of REST is one of this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from appliance.cli.admin.rest.client import API
from appliance.cli.admin.rest.operations import FILE

Document = Mapping[str, Any]


def operations(document: Document) -> str:
    """The file, from the document."""
    lines = [
        json.dumps(operation["operationId"]) + ": " + json.dumps(told, ensure_ascii=False)
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
        for told in [_operation(document, path, method, operation)]
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _operation(document: Document, path: str, method: str, operation: Document) -> dict[str, Any]:
    told = {"method": method.upper(), "path": path.removeprefix(API).rstrip("/"), "summary": operation["summary"]}
    query = [one for one in operation["parameters"] if one["in"] == "query"]
    body = _content(document, operation.get("requestBody", {}))
    answer = next(answer for status, answer in operation["responses"].items() if int(status) < 400)
    fields = _content(document, answer).get("properties", {})
    rows = [name for name, schema in fields.items() if "properties" in _flat(document, schema).get("items", {})]
    lists: dict[str, Any] = {
        "query": {one["name"]: _field(document, one["schema"] | one) for one in query},
        "body": {name: _field(document, schema) for name, schema in body.get("properties", {}).items()},
        "needed": body.get("required", []) + [one["name"] for one in query if one["required"]],
        "rows": rows[0] if len(rows) == 1 else "",
    }
    return told | {name: value for name, value in lists.items() if value}


def _content(document: Document, given: Document) -> dict[str, Any]:
    content = given.get("content", {}).get("application/json", {})
    return _flat(document, content.get("schema", {}))


def _field(document: Document, schema: Document) -> dict[str, Any]:
    """A value's rule without what only a reader of the document wants."""
    return {name: value for name, value in _flat(document, schema).items()
            if name not in ("title", "examples", "name", "in", "required", "schema")}  # fmt: skip


def _flat(document: Document, schema: Document) -> dict[str, Any]:
    """The schema without references and choices: what may be null says so."""
    if "$ref" in schema:
        told = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return {name: value for name, value in _flat(document, told).items() if name != "description"}
    flat: dict[str, Any] = {name: value for name, value in schema.items() if name not in ("allOf", "anyOf")}
    choices = schema.get("anyOf", []) + schema.get("allOf", [])
    if {"type": "null"} in choices:
        flat["nullable"] = True
    choices = [_field(document, one) for one in choices if one != {"type": "null"}]
    if len(choices) == 1:
        flat = choices[0] | flat
    if "items" in flat:
        flat["items"] = _field(document, flat["items"])
    return flat


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_settings")
    import django

    django.setup()
    from dashboard.api.operations import api

    FILE.write_text(operations(api.get_openapi_schema(path_prefix=f"{API}/")), encoding="utf-8")


if __name__ == "__main__":
    main()
