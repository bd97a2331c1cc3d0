"""What can be wrong with a schema, and with a body that should have one.

GantryError
 ├─ SchemaError      the operator's file
 └─ NotOfSchema      a body
"""

from __future__ import annotations

from gantrymq.errors import GantryError


class SchemaError(GantryError):
    """A schema can't be used; it says why."""


class NotOfSchema(GantryError):
    """A body is not what the schema describes; it says where it differs."""
