"""/healthz and /readyz, told apart: a web process that answers, and an appliance that should get no visitors."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import AsyncClient

from dashboard import health
from dashboard.database.state import state


@dataclass
class Lost:
    """A process that is to run and does not."""

    role: str


@pytest.mark.parametrize(
    ("lost", "why", "words"),
    [
        ([Lost("broker"), Lost("namesrv"), Lost("broker")], "", "not ready: broker, namesrv\n"),
        ([], "The dashboard's database is damaged.", "not ready: database\n"),
        ([Lost("broker")], "The dashboard's database is damaged.", "not ready: database, broker\n"),
    ],
)
async def test_what_is_not_ready_is_named_and_the_process_lives(
    monkeypatch: pytest.MonkeyPatch, lost: list[Lost], why: str, words: str
) -> None:
    monkeypatch.setattr(health, "not_running", lambda: lost)
    monkeypatch.setattr(state, "why", why)
    answer = await AsyncClient().get("/readyz")
    assert (answer.status_code, answer.content.decode()) == (503, words)
    alive = await AsyncClient().get("/healthz")
    assert (alive.status_code, alive.content) == (200, b"ok\n")
