"""A master that the name server refuses, because a later epoch has begun, is fenced: at once, and by its own status."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.epochs.members import Members
from appliance.broker.replication.master.old_masters import OldMasters
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.replication.brokers import Group, group, is_master, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC, log_of
from tests.appliance.peer import connected, registration
from tests.waiting import until

SUCCESSOR = "10.9.9.9:10911"


async def register_successor(brokers: Group, epoch: int) -> None:
    """Have another broker known as the master of that epoch; it stays known after the connection's end for long
    enough."""
    async with connected(brokers.namesrv_port) as peer:
        fields, body = registration(SUCCESSOR)
        answer = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"masterEpoch": str(epoch)}, body)
        assert answer.code == 0, answer.remark
        await asyncio.Event().wait()


async def test_a_master_that_the_name_server_refuses_follows_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def not_heard(_self: OldMasters, _address: str) -> bool:
        return False

    async def not_told(*_told: object) -> bool:
        return False

    monkeypatch.setattr(OldMasters, "_tell", not_heard)
    monkeypatch.setattr(Members, "tell", not_told)
    async with group(tmp_path) as brokers, brokers.broker("one") as one, brokers.broker("two", broker_id=1) as two:
        await send(one, 20)
        await same_logs(one, two)
        assert (await promote(two, force="true")).code == 0
        await until(lambda: is_master(two) and is_slave(one))
        await send(two, 5)
        await same_logs(one, two)
        assert log_of(one.controller) == log_of(two.controller)
    fenced = [record.__dict__ for record in caplog.records if getattr(record, "event", "") == "master_fenced"]
    assert [(each["epoch"], each["later_epoch"], each["told_by"]) for each in fenced] == [
        (1, 2, brokers.namesrv_address)
    ]
    assert not any(getattr(record, "event", "") == "namesrv_unreachable" for record in caplog.records)


@pytest.mark.parametrize("waits_for", ["slave", "disk"])
async def test_sends_that_wait_when_the_fence_comes_get_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    settings = {"broker_role": "SYNC_MASTER", "slave_timeout_ms": 3_600_000} if waits_for == "slave" else {}
    store = {"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout_ms": 3_600_000} if waits_for == "disk" else {}
    async with group(tmp_path) as brokers, brokers.broker("one", store=store, **settings) as one:
        controller = one.controller
        waiting = []
        if waits_for == "slave":
            monkeypatch.setattr(controller.slaves, "when_copied", lambda _end, callback: waiting.append(callback))
        else:
            monkeypatch.setattr(controller.store, "when_flushed", lambda _end, callback: waiting.append(callback))
        async with connected(one.port) as peer:
            request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"body")
            peer.write(request.encode())
            await until(lambda: bool(waiting))
            end = controller.store.max_physical_offset
            successor = asyncio.create_task(register_successor(brokers, 7))
            try:
                await until(lambda: bool(controller.slaves.fenced_by))
                for answer in waiting:
                    answer(ResponseCode.SUCCESS if waits_for == "slave" else True)  # too late
                with pytest.raises((EOFError, ConnectionError)):
                    await peer.read()
                assert controller.store.max_physical_offset == end
                assert not controller.store.parts.state.is_writeable
                await until(lambda: is_slave(one))
                assert one.controller.standing.standing.epochs.highest == 7
                async with connected(one.port) as again:
                    answer = await again.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"body")
                assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
                assert one.controller.store.max_physical_offset == end
            finally:
                successor.cancel()
