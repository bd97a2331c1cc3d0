"""The app, as Django knows it, and what `manage.py check` says of the setting GANTRYMQ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from gantrymq.contrib.django.settings import NAME, parse

MISSING = "gantrymq.E001"
WRONG = "gantrymq.E002"
HINT = f'such as {NAME} = {{"NAME_SERVERS": "127.0.0.1:9876"}}'


def check_setting(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    """One error for each thing that is wrong with it."""
    if not hasattr(settings, NAME):
        return [Error(f"the setting {NAME} is missing", hint=HINT, id=MISSING)]
    return [Error(problem, id=WRONG) for problem in parse(getattr(settings, NAME))[1]]


class GantryConfig(AppConfig):
    """`"gantrymq.contrib.django"` in INSTALLED_APPS."""

    name = "gantrymq.contrib.django"
    label = "gantrymq"
    verbose_name: str = "GantryMQ"
    default_auto_field: str = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have Django's system checks look at the setting."""
        register(check_setting)
