"""The SDK logs in applications that know nothing of our formatter: the text carries the facts that `extra=` has."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Producer
from gantrymq.errors import ConnectError
from tests.gantrymq.client.ports import closed_port
from tests.source_files import ROOT, sources, syntax_of

METHODS = ("debug", "info", "warning", "error", "exception", "critical")


def log_calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in sources():
        if path.relative_to(ROOT).parts[0] == "gantrymq":
            for node in ast.walk(syntax_of(path)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in [f"logger.{name}" for name in METHODS]:
                    yield path, node


def facts_of(call: ast.Call) -> set[str]:
    extra = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
    assert isinstance(extra, ast.Dict), ast.unparse(call)
    return {str(key.value) for key in extra.keys if isinstance(key, ast.Constant)}


def test_every_text_has_a_place_for_each_fact() -> None:
    calls = list(log_calls())
    assert len(calls) > 30
    for path, call in calls:
        text = call.args[0]
        assert isinstance(text, ast.Constant), f"{path}:{call.lineno}: the text is a constant, its values are arguments"
        facts = facts_of(call)
        assert "event" in facts, f"{path}:{call.lineno}: no event"
        assert str(text.value).count("%s") == len(call.args) - 1 == len(facts) - 1, f"{path}:{call.lineno}"


async def test_a_plain_formatter_shows_what_happened(caplog: pytest.LogCaptureFixture) -> None:
    address = closed_port()
    caplog.set_level(logging.WARNING)
    async with Producer(address) as producer:
        with pytest.raises(ConnectError):
            await producer.queues("topic")
    assert f"unreachable (address={address}): connection refused" in caplog.text
