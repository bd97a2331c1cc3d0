"""A data folder for the tests of reports."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings


@pytest.fixture
def data(tmp_path: Path, settings: Any, transactional_db: None) -> Path:
    settings.APPLIANCE = dataclasses.replace(django_settings.APPLIANCE, data=tmp_path)
    return tmp_path
