"""One store folder that two makes of broker have in turn, and looks at it from outside: at rest, and over the wire.

What lies in the folder is read by walking the log's sizes, without the store's own code: neither broker is asked if it
agrees with itself.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq.errors import RecordError
from gantrymq.message import record
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.harness import LocalCluster
from tests.peers.fixtures import make_apache_peer
from tests.store.golden import commit_log_records

LOG_FILE_BYTES = 1 << 20
PROPERTIES = {  # the same keys for both makes; small files, so that each kind of them rolls
    "brokerName": "both-a",
    "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "flushConsumerOffsetInterval": "1000",
    "flushDelayOffsetInterval": "1000",
}
READER = "TOOLS_CONSUMER"
HAS_SUBSCRIPTION = "4"
BEHIND_THE_END = {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED}

Queue = tuple[str, int]  # topic, queue id


class OneStore:
    """`open("apache")`, work, `leave(kill=...)`, `open("gantry")` …: same folder, same ports, one name server."""

    def __init__(self, home: Path, **settings: str) -> None:
        """settings: properties on top of the usual ones, for both makes."""
        self.folder = home / "store"
        ours = LocalCluster(home, broker_properties=PROPERTIES | settings)
        apaches = make_apache_peer(home, broker_properties=PROPERTIES | settings)
        self._makes: dict[str, Peer] = {"gantry": ours, "apache": apaches}
        self._current: Peer = ours
        self._was_killed = False

    def __enter__(self) -> Self:
        self._makes["gantry"].start_namesrv()
        return self

    def __exit__(self, *_error: object) -> None:
        for peer in (self._current, self._makes["gantry"]):
            peer.stop_broker()
        self._makes["gantry"].stop()

    @property
    def namesrv_address(self) -> str:
        return self._current.namesrv_address

    @property
    def address(self) -> str:
        return self._current.broker_address

    def open(self, make: str) -> float:
        """Start the broker of this make on the folder; return how many seconds it took to serve."""
        before, peer = self._current, self._makes[make]
        peer.broker_name = PROPERTIES["brokerName"]
        peer.share_name_server(self._makes["gantry"])
        peer._broker_port = before._broker_port  # the stored ids and clients know the port
        self._current = peer
        start = time.monotonic()
        peer.start_broker()
        self._was_killed = False  # it has cut what the one before it tore
        return time.monotonic() - start

    def leave(self, *, kill: bool) -> None:
        """Stop the broker, or kill it without warning."""
        if kill:
            self._current.kill_broker()
            self._was_killed = True
        else:
            self._current.stop_broker()

    # -- at rest ------------------------------------------------------------------------------------------------------

    def at_rest(self) -> dict[Queue, list[bytes]]:
        """Every queue's records, in order, as the log has them. Queue offsets count from 0 without a gap.

        A broker that was killed may have left a torn record at the end, which is none.
        """
        found: dict[Queue, dict[int, bytes]] = defaultdict(dict)
        if (self.folder / "commitlog").is_dir():
            records = list(commit_log_records(self.folder))
            if self._was_killed and records and not _is_whole(records[-1][1]):
                del records[-1]
            for physical_offset, raw in records:
                fields = record.split_record(raw)
                assert fields.physical_offset == physical_offset
                queue = found[fields.topic.decode(), fields.queue_id]
                assert fields.queue_offset not in queue, f"{fields.topic!r} has offset {fields.queue_offset} twice"
                queue[fields.queue_offset] = raw
        for queue_name, records in found.items():
            assert sorted(records) == list(range(len(records))), f"{queue_name} has a gap"
        return {name: [records[offset] for offset in sorted(records)] for name, records in found.items()}

    def saved_offsets(self, name: str) -> dict[str, Any]:
        """The offset table of a file in config/, {} when there is none yet."""
        path = self.folder / "config" / name
        try:
            return _offset_table(path.read_bytes())
        except FileNotFoundError:  # not yet, or between the two steps of Apache's replacing
            return {}

    # -- over the wire ------------------------------------------------------------------------------------------------

    def offsets(self, code: RequestCode) -> dict[str, Any]:
        """The broker's own table: GET_ALL_CONSUMER_OFFSET or GET_ALL_DELAY_OFFSET."""
        return _offset_table(rpc.ask(self.address, code).body)

    def read_queue(self, topic: str, queue_id: int, *, tags: str = "*") -> list[bytes]:
        """Pull a queue from its first to its last message."""
        records: list[bytes] = []
        fields = {
            "consumerGroup": READER,
            "topic": topic,
            "queueId": str(queue_id),
            "queueOffset": "0",
            "maxMsgNums": "32",
            "sysFlag": HAS_SUBSCRIPTION,
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subscription": tags,
            "subVersion": "0",
            "expressionType": "TAG",
        }
        with rpc.connect(self.address) as connection:
            while True:
                answer = rpc.call(connection, RemotingCommand.request(RequestCode.PULL_MESSAGE, fields))
                records += split(answer.body)
                if answer.code in BEHIND_THE_END:
                    return records
                assert answer.code in (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY), answer.remark
                fields["queueOffset"] = answer.ext_fields["nextBeginOffset"]

    def read_unlisted_queue(self, topic: str, queue_id: int, at_rest: list[bytes]) -> list[bytes]:
        """Read a transactions' queue, whose topic may be in no table and so can't be pulled, by its records' places.

        The broker's largest queue offset tells how many; `at_rest` tells the places.
        """
        fields = {"topic": topic, "queueId": str(queue_id)}
        count = int(rpc.ask(self.address, RequestCode.GET_MAX_OFFSET, fields).ext_fields["offset"])
        places = [record.split_record(raw).physical_offset for raw in at_rest[:count]]
        with rpc.connect(self.address) as connection:
            return [
                bytes(
                    rpc.call(
                        connection, RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(place)})
                    ).body
                )
                for place in places
            ]

    def query(self, topic: str, key: str, *, unique: bool = False) -> list[bytes]:
        """Records by key or unique key."""
        fields = {
            "topic": topic,
            "key": key,
            "maxNum": "64",
            "beginTimestamp": "0",
            "endTimestamp": str(int(time.time() * 1000) + 60_000),
            "_UNIQUE_KEY_QUERY": "true" if unique else "false",
        }
        with rpc.connect(self.address) as connection:
            answer = rpc.call(connection, RemotingCommand.request(RequestCode.QUERY_MESSAGE, fields))
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND), answer.remark
        return split(answer.body)


def split(data: bytes | memoryview) -> list[bytes]:
    """Records that lie side by side, one by one."""
    data = bytes(data)
    records = []
    while data:
        size = int.from_bytes(data[:4], "big")
        records.append(data[:size])
        data = data[size:]
    return records


def _is_whole(raw: bytes) -> bool:
    try:
        record.split_record(raw)
    except RecordError:
        return False
    return True


def _offset_table(text: bytes | memoryview) -> dict[str, Any]:
    table: dict[str, Any] = fastjson.loads(bytes(text))["offsetTable"] if text else {}
    return table
