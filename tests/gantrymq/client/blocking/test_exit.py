"""A process that ends without closing its consumer: what was handled is committed, the rest comes again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import AdminClient, Message, MessageQueue, SyncProducer
from tests.gantrymq.client.blocking.programs import ENVIRONMENT, FOLDER, LIMIT_S


@pytest.mark.parametrize("peer", ["gantry"], indirect=True)
async def test_an_exit_commits_what_was_handled_and_sends_nothing_back(peer: Peer) -> None:
    topic = "leaving"
    rpc.create_topic(peer.broker_address, topic, 1)
    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_many(Message(topic, b"%d" % number) for number in range(20))
    finished = subprocess.run(  # noqa: ASYNC221 - nothing else has to go on here
        [sys.executable, FOLDER / "leaving.py", peer.namesrv_address, topic], capture_output=True, text=True,
        timeout=LIMIT_S, env=ENVIRONMENT,
    )  # fmt: skip
    assert (finished.returncode, finished.stderr) == (0, "")
    handled = sorted(map(int, finished.stdout.split()))
    assert handled[:2] == [0, 1]
    async with AdminClient(peer.namesrv_address) as admin:
        stats = await admin.offsets.stats_at(peer.broker_address, topic, topic)
        assert stats.offset_table[MessageQueue(topic, peer.broker_name, 0)].consumer_offset == len(handled)
        sent_back = await admin.offsets.stats_at(peer.broker_address, topic, f"%RETRY%{topic}")
        assert [at.broker_offset for at in sent_back.offset_table.values()] == [0]
