"""What is wrong with a document, as people say it: which line, which field, and what is allowed there.

What is allowed is read off the schema, so that a new field has its sentence at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from django.utils.translation import gettext
from pydantic import ValidationError

from dashboard.definitions.schemas import GROUP_NAME, WORD, Definitions, address_wanted

PROBLEMS_MAX = 20
LOOKS_MAX = 100  # for a line, each through the document: a value that fits none of several kinds has several errors
VALUE_CHARS_MAX = 40
Place = tuple[int | str, ...]


def problems_of(failure: ValidationError, values: Any, line_of: Callable[[Place], int]) -> list[str]:
    """A sentence for each value that does not fit, each once. values: what was read."""
    found: dict[str, None] = {}
    errors = failure.errors(include_url=False)
    for error in errors[:LOOKS_MAX]:
        place, schema = _schema_of(error["loc"])
        words = ", ".join(_words(place, values))
        told = {"line": line_of(place), "place": words, "why": _why(error, schema)}
        found.setdefault(gettext("Line %(line)s, %(place)s: %(why)s") % told)
    is_more = len(found) > PROBLEMS_MAX or len(errors) > LOOKS_MAX
    return [*list(found)[:PROBLEMS_MAX], *(["…"] if is_more else [])]


def _why(error: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if error["type"] in ("extra_forbidden", "invalid_key"):
        return gettext("There is no such field. There are: %(fields)s.") % {"fields": ", ".join(schema["properties"])}
    allowed = _allowed(schema)
    if error["type"] == "missing":
        return gettext("It is missing; it is %(allowed)s.") % {"allowed": allowed}
    if error["type"] == "too_long" and isinstance(error["input"], list | dict):
        return gettext("It has more than %(most)s entries.") % {"most": error["ctx"]["max_length"]}
    if error["type"] == "value_error" and schema.get("type") == "string":
        return address_wanted()  # the only text that a rule of its own checks
    told = {"value": short(_shown(error["input"])), "allowed": allowed}
    return gettext("%(value)s does not fit: it has to be %(allowed)s.") % told


def _shown(value: Any) -> str:
    """As JSON: "3" is not 3. YAML has more than JSON does: dates as names, numbers of any length."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return "…"


@cache
def _schema() -> dict[str, Any]:
    return Definitions.model_json_schema()


def _schema_of(loc: Place) -> tuple[Place, dict[str, Any]]:
    """What a place takes, and the place without pydantic's own words. Of an unknown field: what its item takes."""
    schema = _schema()
    for number, part in enumerate(loc):
        inside = _inside(schema, part)
        if inside is None:
            return (loc[: number + 1] if "properties" in schema else loc[:number]), schema
        if loc[number + 1 : number + 2] == ("[key]",) and "patternProperties" in schema:
            pattern = next(iter(schema["patternProperties"]))
            return loc[: number + 1], {"type": "string", "pattern": pattern}
        schema = inside
    return loc, schema


def _inside(schema: dict[str, Any], part: int | str) -> dict[str, Any] | None:
    if "items" in schema:
        found = schema["items"]
    else:
        found = schema.get("properties", {}).get(part)
        found = found or next(iter(schema.get("patternProperties", {}).values()), None)
        others = schema.get("additionalProperties")
        found = found or (others if isinstance(others, dict) else None)
    return None if found is None else _plain(found)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without a reference, and without the null of what may be absent."""
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(kinds) == 1:
        schema = kinds[0]
    if "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def _allowed(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return gettext("text, a whole number, or true or false")  # a setting of a channel
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        words = ", ".join(map(str, choices))
        return gettext("one of %(choices)s") % {"choices": words} if choices[1:] else words
    match schema.get("type"):
        case "boolean":
            return gettext("true or false")
        case "integer":
            return gettext("a whole number%(range)s") % {"range": _range(schema)}
        case "number":
            return gettext("a number%(range)s") % {"range": _range(schema)}
        case "array":
            return gettext("a list")
        case "object":
            fields = ", ".join(schema.get("properties", {}))
            return gettext("fields with their values: %(fields)s") % {"fields": fields or gettext("name: value")}
    return _text(schema)


def _range(schema: Mapping[str, Any]) -> str:
    most = schema.get("maximum", schema.get("exclusiveMaximum", 0) - 1)
    told = {"least": schema.get("minimum", 0), "most": most}
    return gettext(" of at least %(least)s") % told if most < 0 else gettext(" from %(least)s to %(most)s") % told


def _text(schema: Mapping[str, Any]) -> str:
    kind = {WORD: gettext("text without spaces, commas or equals signs"),
            GROUP_NAME: gettext("letters, digits, - and _ (and % and |)")}.get(
        schema.get("pattern", ""), gettext("text")
    )  # fmt: skip
    told = {"kind": kind, "least": schema.get("minLength", int("pattern" in schema)), "most": schema.get("maxLength")}
    if told["most"] is None:
        return kind
    return gettext("%(kind)s, %(least)s to %(most)s characters") % told


def _words(place: Place, values: Any) -> list[str]:
    """ "topics", "2 (orders)", "perm": items are counted from one, as people count."""
    words = []
    for part in place:
        is_item = isinstance(values, list) and isinstance(part, int)
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            values = None
        name = (values.get("name") or values.get("access_key")) if isinstance(values, dict) else None
        named = f" ({short(name if isinstance(name, str) else _shown(name))})" if name else ""
        words.append(f"{int(part) + 1}{named}" if is_item else short(str(part)))
    return words


def short(text: str) -> str:
    return text[:VALUE_CHARS_MAX] + "…" * (len(text) > VALUE_CHARS_MAX)
