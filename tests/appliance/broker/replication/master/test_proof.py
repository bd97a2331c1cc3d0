"""A master with automatic failover and a real etcd: what it does past its deadline, and after it."""

from __future__ import annotations

import math
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.life import BrokerLife
from appliance.broker.replication.master import proof as proof_module
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import ConfigError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.replication.brokers import group, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.broker.replication.recorded import OnRecord, is_refused, takes_messages
from tests.appliance.peer import Peer, connected
from tests.servers.etcd import etcd
from tests.waiting import until

AUTOMATIC: dict[str, Any] = {
    "automatic_failover": True,
    "failover_lease_s": 10,  # a busy machine renews late
    "read_confirmed_only": True,
    "all_ack_in_sync": True,
}

PATIENT = AUTOMATIC | {"failover_lease_s": 60}


@pytest.fixture
async def on_record(tmp_path: Path) -> AsyncIterator[OnRecord]:
    with etcd(tmp_path / "etcd") as (member,):
        async with group(tmp_path) as brokers:
            yield OnRecord(brokers, member)


def is_proven(broker: BrokerLife) -> bool:
    proof = broker.controller.slaves.proof
    return proof is not None and proof.is_proven


async def max_offset(peer: Peer) -> int:
    answer = await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return int(answer.ext_fields["offset"])


@pytest.mark.parametrize(
    "lacks",
    [
        {"etcd_endpoints": ""},
        {"all_ack_in_sync": False},
        {"read_confirmed_only": False},
        {"broker_role": "ASYNC_MASTER"},
    ],
)
def test_automatic_failover_needs_what_makes_it_safe(lacks: dict[str, Any]) -> None:
    settings = {"broker_role": "SYNC_MASTER", "slaves_enable": True, "etcd_endpoints": "http://127.0.0.1:2379"}
    BrokerConfig(**{**settings, **AUTOMATIC})
    with pytest.raises(ConfigError, match="automaticFailover needs"):
        BrokerConfig(**{**settings, **AUTOMATIC, **lacks})


@pytest.mark.slow
async def test_a_master_without_etcd_steps_down_and_goes_on_in_the_same_epoch(on_record: OnRecord) -> None:
    async with on_record.master("one", **AUTOMATIC) as one, on_record.slave("two", 1, **AUTOMATIC) as two:
        await on_record.begin(one)
        await on_record.until_in_sync(one, two)
        await send(one, 5)
        before = await on_record.term()
        async with connected(one.port) as stale:
            assert await max_offset(stale) == 5
            on_record.member.signal(signal.SIGSTOP)
            try:
                await until(lambda: not is_proven(one) and not takes_messages(one))
                await stale.until_closed()
                assert await is_refused(one)
                async with connected(one.port) as peer:
                    assert await max_offset(peer) == 5  # consumers read on
            finally:
                on_record.member.signal(signal.SIGCONT)
        await until(lambda: takes_messages(one))
        await send(one, 5)
        after = await on_record.term()
        assert after.is_of(before.epoch, before.id) and after.owner == before.owner


@pytest.mark.slow
async def test_what_was_appended_past_the_deadline_is_neither_confirmed_nor_answered(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a SIGSTOP: the message is read before the broker has looked at its clock."""
    monkeypatch.setattr(proof_module, "LOOK_S", 5.0)
    async with on_record.master("one", **PATIENT) as one, on_record.slave("two", 1, **PATIENT) as two:
        await on_record.begin(one)
        await on_record.until_in_sync(one, two)
        await send(one, 5)
        proof = one.controller.slaves.proof
        assert proof is not None
        async with connected(one.port) as peer:
            proof.renewals.stop()
            proof.renewals.until = -math.inf
            assert proof.lacking.endswith("the last renewal has no answer yet")
            end = one.controller.store.max_physical_offset
            fields = send_fields("G", TOPIC, 0, "")
            peer.write(RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"late").encode())
            await until(lambda: two.controller.store.max_physical_offset > end)
            assert await max_offset_of(one) == 5
            assert await peer.until_closed() == b""


async def max_offset_of(broker: BrokerLife) -> int:
    async with connected(broker.port) as peer:
        return await max_offset(peer)


@pytest.mark.slow
async def test_a_slave_that_takes_over_ends_the_master_for_good(on_record: OnRecord) -> None:
    async with on_record.master("one", **PATIENT) as one, on_record.slave("two", 1, **PATIENT) as two:
        await on_record.begin(one)
        await on_record.until_in_sync(one, two)
        await send(one, 5)
        await same_logs(one, two)
        answer = await promote(two, acceptUnknown="true", force="true")
        assert answer.code == 0, answer.remark
        await until(lambda: is_slave(one) and takes_messages(two))
        assert is_proven(two) and one.controller.slaves.proof is None
        view = await on_record.register.view()
        assert view.beat is not None and two.controller.slaves.proof is not None
        assert view.beat.session == two.controller.slaves.proof.renewals.session
