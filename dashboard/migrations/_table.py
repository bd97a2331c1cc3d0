"""A table as the migrations make it. Django reads no migration of a name that begins with an underscore."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def table(
    name: str, /, *, options: dict[str, Any] | None = None, **fields: models.Field[Any, Any]
) -> migrations.CreateModel:
    key = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
    return migrations.CreateModel(name, [("id", key), *fields.items()], options)
