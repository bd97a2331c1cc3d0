"""The one Django application of the project."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Registers models, template tags and static files."""

    name = "dashboard"
    default_auto_field = "django.db.models.BigAutoField"
