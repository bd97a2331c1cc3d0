"""A server of S3, for backups there."""

from __future__ import annotations

import pytest

from tests.appliance.reports.s3_server import KEYS, s3

__all__ = ["s3"]


@pytest.fixture
def bucket(s3: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place of backups of this test alone; its keys are in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return f"s3://lake/backups/{abs(hash(request.node.nodeid)):x}?{s3}"
