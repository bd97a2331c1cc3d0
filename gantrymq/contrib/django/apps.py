"""The app, as Django knows it."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks

from gantrymq.contrib.django.checks import check_setting


class GantryConfig(AppConfig):
    """`"gantrymq.contrib.django"` in INSTALLED_APPS."""

    name = "gantrymq.contrib.django"
    label = "gantrymq"
    verbose_name: str = "GantryMQ"
    default_auto_field: str = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have Django's system checks look at the setting."""
        checks.register(check_setting)
