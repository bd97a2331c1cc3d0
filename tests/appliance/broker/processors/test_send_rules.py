"""processors/send.py: rules of a send that one answer alone does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.record import decode_records
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.caller import Caller, calling

OLD_CLIENT = 120  # before V3_4_9


@pytest.mark.parametrize(
    ("tries", "limit", "version", "topic"),
    [
        ("3", "3", None, "%DLQ%readers"),
        ("2", "3", None, "%RETRY%readers"),
        ("3", "3", OLD_CLIENT, "%RETRY%readers"),  # the group's own limit, 16
        ("16", "99", OLD_CLIENT, "%DLQ%readers"),
        ("16", "99", None, "%RETRY%readers"),
    ],
)
async def test_the_clients_limit_of_tries_counts_unless_it_is_too_old(
    caller: Caller, tries: str, limit: str, version: int | None, topic: str
) -> None:
    fields = _fields(tries, limit)
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"x")
    request.version = version or request.version
    assert (await caller.ask(request)).code == 0
    assert caller.cluster.broker.store.max_offset(topic, 0) == 1


def _fields(tries: str, limit: str) -> dict[str, str]:
    return {
        "a": "producers", "b": "%RETRY%readers", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0",
        "i": "RETRY_TOPIC\x01orders", "j": tries, "k": "false", "l": limit, "m": "false",
    }  # fmt: skip


async def test_a_message_that_a_client_counts_out_is_a_dead_letter_at_once(caller: Caller) -> None:
    properties = "KEYS\x01k\x02DELAY\x013\x02RETRY_TOPIC\x01orders"
    assert (await caller.send("%RETRY%readers", b"x", properties, j="16", l="16")).code == 0
    store = caller.cluster.broker.store
    (dead,) = decode_records(b"".join(store.get_message("g", "%DLQ%readers", 0, 0, 32).buffers))
    assert dead.properties == {"KEYS": "k", "RETRY_TOPIC": "orders", "CLUSTER": "DefaultCluster"}


@pytest.mark.parametrize("batch", [False, True])
async def test_a_disk_that_is_too_slow_is_told_as_stored_but(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: bool
) -> None:
    async with calling(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as caller:
        store = caller.cluster.broker.store
        monkeypatch.setattr(store, "when_flushed", lambda end, tell: tell(False))
        body = encode_batch([Message("orders", b"1"), Message("orders", b"2")]) if batch else b"x"
        answer = await caller.send("orders", body, m=str(batch).lower())
        assert answer.code == 10
        assert (answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == ("0", "0")
        assert len(answer.ext_fields["msgId"].split(",")) == store.max_offset("orders", 0) == (2 if batch else 1)


async def test_who_does_not_wait_for_the_disk_is_answered_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calling(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as caller:
        monkeypatch.setattr(caller.cluster.broker.store, "when_flushed", lambda end, tell: tell(False))
        assert (await caller.send("orders", b"x", "WAIT\x01false")).code == 0
        assert (await caller.send("orders", b"x", "WAIT\x01true")).code == 10
