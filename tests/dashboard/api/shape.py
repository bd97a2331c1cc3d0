"""REST's shape as text: `python -m tests.dashboard.api.shape` writes rest.txt, a test compares it with the document.

What programs hold on to stands there, a line a thing: addresses, parameters, bodies, answers, refusals, and each field
with its type and bounds. A change of it is seen in review. Sentences are left out: they may change. A part of an
address that is any text stands in the address alone, and the fields that all pages of lists have stand with `Page`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("rest.txt")
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")
PAGE = {"total: integer | null", "next: string | null", "problems: [string]"}
Document = Mapping[str, Any]


def shape(document: Document) -> str:
    """The file, from the document."""
    operations = (line for path, methods in document["paths"].items() for line in _path(path, methods))
    schemas = (line for name, told in sorted(document["components"]["schemas"].items()) for line in _schema(name, told))
    page = ("Page", *(f"    {line}" for line in sorted(PAGE)), "")
    return "\n".join([*operations, *page, *schemas]) + "\n"


def _path(path: str, methods: Mapping[str, Document]) -> Iterator[str]:
    for method, told in methods.items():
        yield f"{method.upper()} {path}  ({told['operationId']})"
        for one in told["parameters"]:
            parameter = f"{one['in']} {_field(one['name'], one['schema'], one['required'])}"
            if parameter != f"path {one['name']}: string":
                yield f"    {parameter}"
        for kind, given in told.get("requestBody", {}).get("content", {}).items():
            yield f"    body {_type(given['schema'])}{'' if kind == 'application/json' else f' as {kind}'}"
        answers = sorted((int(status), answer.get("content", {})) for status, answer in told["responses"].items())
        for status, content in answers:
            if status < 400:
                yield f"    {status} {' '.join(_type(one['schema']) for one in content.values())}".rstrip()
        yield f"    refused {' '.join(str(status) for status, _ in answers if status >= 400)}"
        yield ""


def _schema(name: str, told: Document) -> Iterator[str]:
    fields = told.get("properties")
    closed = "  (no other fields)" if told.get("additionalProperties") is False else ""
    lines = [_field(field, schema, field in told.get("required", ())) for field, schema in (fields or {}).items()]
    page = "  (Page)" if {*lines} >= PAGE else ""
    yield name + page + (closed if fields is not None else f" = {_type(told)}")
    yield from (f"    {line}" for line in lines if not (page and line in PAGE))
    yield ""


def _field(name: str, schema: Document, is_required: bool) -> str:
    bounds = "".join(
        f" {bound}={one[bound]}" for one in (schema, *schema.get("anyOf", ())) for bound in BOUNDS if bound in one
    )
    default = "" if is_required else f" = {schema.get('default')!r}"
    return f"{name}: {_type(schema)}{bounds}{default}"


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    choices = schema.get("anyOf", schema.get("allOf"))
    if choices is not None:
        return " | ".join(map(_type, choices))
    if "enum" in schema or "const" in schema:
        return "/".join(map(str, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        return f"{{{_type(more)}}}"
    return str(schema.get("format") or schema.get("type", "any"))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_settings")
    import django

    django.setup()
    from dashboard.api.operations import api

    FILE.write_text(shape(api.get_openapi_schema(path_prefix="/api/v1/")), encoding="utf-8")


if __name__ == "__main__":
    main()
