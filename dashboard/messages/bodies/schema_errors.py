"""What can be wrong with a schema, and with a body that should have one.

GantryError
 ├─ SchemaError      the operator's file
 └─ NotOfSchema      a body
"""

from __future__ import annotations

from django.utils.translation import gettext

from gantrymq.errors import GantryError


class SchemaError(GantryError):
    """A schema can't be used, and why, in the language of who reads it. text: a sentence, or what `values` fit into."""

    def __init__(self, text: str, **values: str) -> None:
        super().__init__(text)
        self._values = values

    def __str__(self) -> str:
        text = gettext(str(self.args[0]))
        return text % self._values if self._values else text


class NotOfSchema(GantryError):
    """A body is not what the schema describes; it says where it differs."""
