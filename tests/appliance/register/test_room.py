"""What is said of an etcd that is full, or that nobody compacts: a real one, with a small quota."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.register.etcd import EtcdClient, EtcdError, endpoints_of
from appliance.register.room import CHANGES_KEPT, ROOM_S, Trouble, trouble_of
from gantrymq.timeouts import timeout
from tests.conftest import WITHIN_S, time_limit
from tests.servers.etcd import EtcdMember, etcd, give_room, with_quota

KEY, FILLER = "/test/a", b"x" * 20_000


@pytest.fixture
async def client(member: EtcdMember, patient_clients: None) -> AsyncIterator[EtcdClient]:
    client = EtcdClient(endpoints_of(member.url))
    yield client
    await client.change([], {}, [KEY])


async def fill(client: EtcdClient) -> None:
    """Until etcd refuses."""
    with pytest.raises(EtcdError, match="space exceeded"):
        while True:
            await client.change([], {KEY: FILLER})


@pytest.mark.usefixtures("patient_clients")
async def test_an_etcd_that_is_full_is_told_until_it_has_room_and_its_alarm_is_disarmed(tmp_path: Path) -> None:
    with etcd(tmp_path) as members:
        (member,) = members
        with_quota(member, members, 64 << 10)
        client = EtcdClient(endpoints_of(member.url))
        assert await trouble_of(client, KEY) == Trouble()
        await fill(client)
        told = await trouble_of(client, KEY)
        assert told.is_refusing and "masters can't renew" in told.text and "alarm disarm" in told.text
        await asyncio.to_thread(give_room, member)
        assert await trouble_of(client, KEY) == Trouble()
        assert await client.change([], {KEY: b""})


async def test_a_large_etcd_that_keeps_all_its_changes_is_told_until_it_is_compacted(
    client: EtcdClient, member: EtcdMember
) -> None:
    for _ in range(20):
        await client.change([], {KEY: b""})
    told = await trouble_of(client, KEY, changes_kept=10, large_bytes=0)
    assert not told.is_refusing and "kept its last 10 changes" in told.text and "never compacted" in told.text
    assert await trouble_of(client, KEY, CHANGES_KEPT, large_bytes=0) == Trouble()
    assert await trouble_of(client, KEY, changes_kept=10) == Trouble()  # compacted each day, or of many users, maybe
    await asyncio.to_thread(give_room, member)
    assert await trouble_of(client, KEY, changes_kept=10, large_bytes=0) == Trouble()


async def test_of_an_etcd_that_does_not_answer_nothing_is_told(tmp_path: Path) -> None:
    with etcd(tmp_path) as (member,):
        client = EtcdClient(endpoints_of(member.url))
        member.kill()
        assert await trouble_of(client, KEY) == Trouble()


async def test_an_etcd_that_is_slow_about_it_is_not_waited_for(tmp_path: Path) -> None:
    with etcd(tmp_path) as (member,):
        client = EtcdClient(endpoints_of(member.url), deadline_s=WITHIN_S)
        member.signal(signal.SIGSTOP)
        async with timeout(time_limit(2 * ROOM_S)):
            assert await trouble_of(client, KEY) == Trouble()
