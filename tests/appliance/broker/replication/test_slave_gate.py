"""A slave with readConfirmedOnly: its consumers see no more than its master's would."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import group, send
from tests.appliance.broker.replication.pair import PULL
from tests.appliance.peer import connected

AT_ONCE = {"sysFlag": "4", "suspendTimeoutMillis": "0", "queueOffset": "0"}


@pytest.mark.parametrize("has_set", [True, False], ids=["of a set", "never in sync"])
async def test_a_master_that_is_a_slave_now_shows_nothing_that_it_had_alone(tmp_path: Path, has_set: bool) -> None:
    """It may have to be cut, once the new master is found."""
    async with group(tmp_path) as brokers:
        async with brokers.broker("one") as one:
            await send(one, 2)
            confirmed = one.controller.store.max_physical_offset
            await send(one, 1)
        if has_set:
            file = InSyncFile(brokers.store_of("one"))
            file.load()
            file.keep(InSyncRecord(1, ("127.0.0.1:1",), confirmed, confirmed))
        async with brokers.broker("one", broker_id=1, read_confirmed_only=True) as one, connected(one.port) as peer:
            assert one.controller.config.is_slave
            answer = await peer.ask(RequestCode.PULL_MESSAGE, PULL | AT_ONCE)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.ext_fields["nextBeginOffset"] == ("2" if has_set else "3")
