"""The OpenAPI document as a page shows it: operations by tag, with what each takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter, or one field of a body. rule: its type and bounds, in words."""

    name: str
    where: str  # path, query or body
    rule: str
    text: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. answers: status and phrase of a success; curl: a line that asks for it."""

    id: str
    method: str
    path: str
    summary: str
    fields: list[Field]
    answers: list[tuple[str, str]]
    curl: str


def operations(document: Document) -> dict[str, list[Operation]]:
    """By tag, in the document's order."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                told = methods[method]
                tag = (told.get("tags") or [""])[0]
                found.setdefault(tag, []).append(_operation(document, path, method, told))
    return found


def _operation(document: Document, path: str, method: str, told: Document) -> Operation:
    parameters = [
        Field(one["name"], one["in"], _rule(document, one["schema"]), one.get("description", ""), one["required"])
        for one in told.get("parameters", [])
    ]
    body = _body(document, told)
    answers = [(status, one.get("description", "")) for status, one in told["responses"].items() if int(status) < 400]
    return Operation(
        id=told["operationId"], method=method.upper(), path=path, summary=told.get("summary", ""),
        fields=parameters + _body_fields(document, body), answers=answers, curl=_curl(document, path, method, body),
    )  # fmt: skip


def _body(document: Document, told: Document) -> Document | None:
    content = told.get("requestBody", {}).get("content", {}).get("application/json")
    return None if content is None else _resolved(document, content["schema"])


def _body_fields(document: Document, body: Document | None) -> list[Field]:
    if body is None:
        return []
    required = set(body.get("required", ()))
    return [
        Field(name, "body", _rule(document, schema), schema.get("description", ""), name in required)
        for name, schema in body.get("properties", {}).items()
    ]


def _resolved(document: Document, schema: Document) -> Document:
    """The schema that a reference leads to; of a choice with null, the other one."""
    if "$ref" in schema:
        found: Document = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return _resolved(document, found)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return _resolved(document, choices[0]) if len(choices) == 1 else schema


def _rule(document: Document, given: Document) -> str:
    schema = _resolved(document, given)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_rule(document, one) for one in schema["anyOf"])
    words = [schema.get("format") or schema.get("type", "any")]
    if schema.get("type") == "array":
        words = [f"list of {_rule(document, schema.get('items', {}))}"]
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        words.append(f"{'' if low is None else low} … {'' if high is None else high}".strip())
    if "maxLength" in schema:
        words.append(f"up to {schema['maxLength']} characters")
    if given.get("default") not in (None, "", [], {}):
        words.append(f"default {json.dumps(given['default'])}")
    return ", ".join(words)


def _curl(document: Document, path: str, method: str, body: Document | None) -> str:
    asked = "" if method == "get" else f" -X {method.upper()}"
    sent = ""
    if body is not None:
        example = {
            name: _example(document, schema)
            for name, schema in body.get("properties", {}).items()
            if name in body.get("required", ())
        }
        sent = f" -H 'Content-Type: application/json' -d '{json.dumps(example)}'"
    return f'curl{asked} -H "Authorization: Bearer $GANTRY_TOKEN"{sent} "$GANTRY_URL{path}"'


def _example(document: Document, given: Document) -> Any:
    schema = _resolved(document, given)
    for known in (given, schema):
        if known.get("examples"):
            return known["examples"][0]
        if "default" in known:
            return known["default"]
    if "enum" in schema:
        return schema["enum"][0]
    empty: dict[str, Any] = {
        "integer": schema.get("minimum", 0),
        "number": 0,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return empty.get(schema.get("type", ""), "…")
