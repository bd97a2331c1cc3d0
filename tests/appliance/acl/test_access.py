"""The gate by itself: what refusing costs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from appliance.acl.access import LOGGED_PEERS_MAX, Access, AccessDenied
from appliance.acl.account_book import AccountBook
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand


@dataclass
class Stranger:
    """A connection from somewhere."""

    remote_address: tuple[str, int]
    access: Any = None
    local_host: str = "127.0.0.1"

    @property
    def remote_text(self) -> str:
        return f"{self.remote_address[0]}:{self.remote_address[1]}"


class NoStore:
    def topic_at(self, physical_offset: int) -> str | None:
        return None


def test_strangers_without_end_fill_neither_memory_nor_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    book = AccountBook(tmp_path)
    book.load()
    gate = Access(book, NoStore())
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, {"b": "TopicX"})
    strangers = [Stranger((f"10.{number >> 8}.{number & 255}.1", 1)) for number in range(3 * LOGGED_PEERS_MAX)]
    for stranger in [*strangers, *[strangers[-1]] * 1000]:
        with pytest.raises(AccessDenied):
            gate(stranger, request)
    assert gate.denied["no_account"] == len(strangers) + 1000
    assert len(gate._logged_at) <= LOGGED_PEERS_MAX
    lines = [vars(record)["peer"] for record in caplog.records if getattr(record, "event", "") == "access_denied"]
    assert lines.count(strangers[-1].remote_text) == 1, "one line about each in ten seconds"
