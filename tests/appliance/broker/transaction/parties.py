"""A broker and the producers of a group, on bare connections, for tests of transactions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from appliance.broker.controller import BrokerController
from gantrymq.message.ids import create_unique_id, decode_offset_message_id
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import encode_properties
from gantrymq.message.record import decode_records
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer, connected
from tests.harness import serving

GROUP = "PG-orders"
TOPIC = "orders"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARDED = "TRANS_CHECK_MAX_TIME_TOPIC"
CHECKER = "CID_RMQ_SYS_TRANS"
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
YOUNG_MS = 1_800_000  # transactionTimeOut here: however long a test stands still, what it sends is young
OLD_MS = 2 * YOUNG_MS


@dataclass
class Half:
    """A prepared message as its producer knows it."""

    queue_offset: int
    physical_offset: int
    unique_key: str


class ProducerPeer:
    """One producer's connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def prepare(
        self, body: bytes, *, queue_id: int = 1, age_ms: int = 0, sys_flag: int = 4, **properties: str
    ) -> Half:
        """Send a prepared message that says it is `age_ms` old."""
        unique_key = create_unique_id()
        marks: dict[str, Any] = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": unique_key, "TAGS": "a", **properties}
        answer = await self.send(body, queue_id=queue_id, age_ms=age_ms, sys_flag=sys_flag, **marks)
        assert answer.code == 0, answer.remark
        assert (answer.ext_fields["queueId"], answer.ext_fields["transactionId"]) == (str(queue_id), unique_key)
        _, _, physical_offset = decode_offset_message_id(answer.ext_fields["msgId"])
        return Half(int(answer.ext_fields["queueOffset"]), physical_offset, unique_key)

    async def send(
        self,
        body: bytes,
        *,
        queue_id: int = 1,
        age_ms: int = 0,
        sys_flag: int = 0,
        batch: bool = False,
        **properties: str,
    ) -> RemotingCommand:
        fields = send_fields(GROUP, TOPIC, queue_id, encode_properties(properties), is_batch=batch) | {
            "f": str(sys_flag),
            "g": str(int(time.time() * 1000) - age_ms),
        }
        return await self.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body)

    async def end(self, half: Half, outcome: int, **changes: Any) -> RemotingCommand:
        return await self.peer.ask(RequestCode.END_TRANSACTION, end_fields(half, outcome, **changes))

    async def hello(self, client_id: str = "10.0.0.1@p") -> None:
        """Become a member of the producer group."""
        beat = HeartbeatData(client_id, [ProducerData(GROUP)])
        assert (await self.peer.ask(RequestCode.HEART_BEAT, None, beat.to_json())).code == 0

    async def asked(self) -> tuple[Half, MessageExt, RemotingCommand]:
        """The next question of the broker: the record it is about, the message, the request."""
        request = await self.peer.read()
        assert request.code == RequestCode.CHECK_TRANSACTION_STATE and request.is_oneway
        fields = request.ext_fields
        half = Half(int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"]), fields.get("msgId", ""))
        (message,) = decode_records(request.body)
        return half, message, request


def end_fields(half: Half, outcome: int, **changes: Any) -> dict[str, str]:
    fields = {
        "producerGroup": GROUP,
        "tranStateTableOffset": half.queue_offset,
        "commitLogOffset": half.physical_offset,
        "commitOrRollback": outcome,
        "fromTransactionCheck": "false",
        "msgId": half.unique_key,
        **changes,
    }
    return {name: str(value) for name, value in fields.items()}


@contextlib.asynccontextmanager
async def transactions_at(
    folder: Path, *, store: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[tuple[BrokerController, ProducerPeer]]:
    """A broker whose check rounds only come when the test calls them, and a producer."""
    settings = {"transaction_check_interval_ms": 3_600_000, "transaction_timeout_ms": YOUNG_MS, **settings}
    async with serving(folder, broker=settings, store=store) as cluster, connected(cluster.broker.port) as peer:
        yield cluster.broker, ProducerPeer(peer)


def stored(broker: BrokerController, topic: str, queue_id: int = 0) -> list[MessageExt]:
    """What a queue holds."""
    messages: list[MessageExt] = []
    while len(messages) < broker.store.max_offset(topic, queue_id):
        found = broker.store.get_message("g", topic, queue_id, len(messages), 32)
        messages += decode_records(b"".join(found.buffers))
    return messages


def bodies(broker: BrokerController, queue_id: int = 1) -> list[bytes]:
    """Bodies that consumers of the real topic would get."""
    return [message.body for message in stored(broker, TOPIC, queue_id)]
