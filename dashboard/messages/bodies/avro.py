"""Avro: one value without a header, as producers write it with a schema that both sides know.

The reader is compiled and trusts its input: a schema that lets a few bytes become endless values (arrays of nothing) or
endless depth (a type within itself) is refused before any body is read.
"""

from __future__ import annotations

import io
import json
import struct
from typing import Any

from django.utils.translation import gettext

from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError
from dashboard.messages.bodies.unpack import plain

TYPES_MAX = 2000  # in the schema, each use of a named one counted
DEPTH_MAX = 64


class AvroDecoder:
    """One schema. parts: those that it names, each before the one that needs it."""

    kind = "avro"

    def __init__(self, file: str, content: bytes, parts: tuple[bytes, ...] = ()) -> None:
        import fastavro  # a tenth of a second of each start, for the few that have such schemas

        self.file = file
        self._read = fastavro.schemaless_reader
        try:
            named: dict[str, Any] = {}
            for part in parts:
                fastavro.parse_schema(json.loads(part), named_schemas=named)
            self._schema = fastavro.parse_schema(json.loads(content), named_schemas=named)
            _Walk(file, named).least_bytes(self._schema, ())
        except SchemaError:
            raise
        except Exception as exc:  # the library's own kinds differ from version to version
            raise SchemaError(gettext("%(file)s is not an Avro schema: %(why)s")
                              % {"file": file, "why": str(exc)[:200]}) from exc  # fmt: skip

    def decode(self, body: bytes, *, framed: bool) -> tuple[Any, str]:
        """Raises NotOfSchema."""
        source = io.BytesIO(body)
        try:
            value = plain(self._read(source, self._schema, None))
        except EOFError:
            raise NotOfSchema(gettext("it ends too early")) from None
        except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, struct.error) as exc:
            raise NotOfSchema(str(exc)[:200] or type(exc).__name__) from exc
        if rest := len(body) - source.tell():
            raise NotOfSchema(gettext("%(rest)s B are left over") % {"rest": rest})
        return value, ""


class _Walk:
    """Once through a schema with all that it names."""

    def __init__(self, file: str, named: dict[str, Any]) -> None:
        self._file = file
        self._named = named
        self._types = 0

    def least_bytes(self, schema: Any, within: tuple[str, ...]) -> int:
        """How many bytes a value has at least. Raises SchemaError for a schema that no body is read with."""
        self._types += 1
        if self._types > TYPES_MAX or len(within) > DEPTH_MAX:
            raise self._refused(gettext("it is too large"))
        if isinstance(schema, list):
            for one in schema:
                self.least_bytes(one, (*within, ""))
            return 1
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        name = schema.get("name", "") if isinstance(schema, dict) else ""
        if name and name in within:
            raise self._refused(gettext("%(name)s contains itself") % {"name": name})
        inside = (*within, name)
        if isinstance(kind, dict | list):
            return self.least_bytes(kind, inside)
        if kind in ("record", "error"):
            return sum(self.least_bytes(field["type"], inside) for field in schema["fields"])
        if kind == "array":
            if not self.least_bytes(schema["items"], inside):
                raise self._refused(gettext("it has an array of values that take no bytes"))
        elif kind == "map":
            self.least_bytes(schema["values"], inside)
        return {"null": 0, "fixed": schema["size"] if kind == "fixed" else 0}.get(kind, 1)

    def _refused(self, why: str) -> SchemaError:
        return SchemaError(gettext("Bodies are not decoded by %(file)s: %(why)s.") % {"file": self._file, "why": why})
