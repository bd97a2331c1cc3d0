"""Apache RocketMQ 4.9.7, live: the same messages through pulls and out of its store folder, while it writes."""

from __future__ import annotations

import functools
from typing import Any

from gantrymq import Message, MessageExt, SyncProducer, SyncTransactionProducer, TransactionListener, TransactionState
from gantrymq.contrib.spark.batch import GantryReader
from gantrymq.contrib.spark.columns import COMMON, ON_DEMAND, schema_of
from gantrymq.errors import ConfigError
from tests.gantrymq.contrib.spark.stores import rows_of
from tests.peers import ApachePeer
from tests.peers.dispatch import wait_dispatched
from tests.peers.fixtures import apache_peer as apache_peer
from tests.waiting import wait_until

EVERYTHING = [column.name for column in (*COMMON, *ON_DEMAND)]


class EveryOther(TransactionListener):
    """Commits messages with an even number; rolls the others back."""

    def execute(self, message: Message, argument: Any, /) -> TransactionState:
        is_even = int(message.body) % 2 == 0
        return TransactionState.COMMIT if is_even else TransactionState.ROLLBACK

    def check(self, message: MessageExt, /) -> TransactionState:
        return TransactionState.ROLLBACK


def read(columns: list[str] = EVERYTHING, **options: str) -> list[dict[str, Any]]:
    rows = rows_of(GantryReader(options, schema_of(columns)))
    return sorted(rows, key=lambda row: (row["topic"], row["queue_id"], row["queue_offset"]))


def test_pulls_and_folder_of_apaches_broker_give_what_was_sent(apache_peer: ApachePeer) -> None:
    namesrv = apache_peer.namesrv_address
    sent = [b"%d" % n * (400 if n % 50 == 0 else 1) for n in range(2000)]
    with SyncProducer(namesrv, compress_from_bytes=300) as producer:
        producer.send_many([Message("orders", body, tags="t", keys=f"k{n}") for n, body in enumerate(sent)])
        producer.send_batch([Message("batch", b"%d" % n) for n in range(30)])
        producer.send(Message("orders", b"later", delay_level=18))
    wait_dispatched(apache_peer.broker_address)
    pulled = read(namesrv=namesrv, subscribe="orders,batch")
    stored = read(path=str(apache_peer.store), brokerName=apache_peer.broker_name, subscribe="orders,batch")
    assert pulled == stored
    assert sorted(row["body"] for row in pulled if row["topic"] == "orders") == sorted(sent)
    assert sorted(row["body"] for row in pulled if row["topic"] == "batch") == sorted(b"%d" % n for n in range(30))
    assert len({row["offset_message_id"] for row in pulled}) == len(pulled)
    moment = pulled[700]["store_timestamp"]
    moment_ms = str(int(moment.timestamp() * 1000))
    since = read(
        ["topic", "queue_id", "queue_offset"], namesrv=namesrv, subscribe="orders", startingTimestamp=moment_ms
    )
    assert len(since) == sum(row["store_timestamp"] >= moment and row["topic"] == "orders" for row in pulled)


def test_of_transactions_only_what_is_committed_is_shown(apache_peer: ApachePeer) -> None:
    namesrv = apache_peer.namesrv_address
    with SyncTransactionProducer(namesrv, group="shop", listener=EveryOther()) as producer:
        for number in range(10):
            producer.send_in_transaction(Message("deals", b"%d" % number))
        producer.send(Message("later", b"-", delay_level=18))
    for place in ({"namesrv": namesrv}, {"path": str(apache_peer.store)}):
        wait_until(functools.partial(_has_five, place))  # commits are not answered
        assert _deals(place) == [b"0", b"2", b"4", b"6", b"8"]
        assert "RMQ_SYS_TRANS_HALF_TOPIC" not in {row["topic"] for row in read(**place)}
    held = read(path=str(apache_peer.store), includeInternal="true")
    assert {"RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"} <= {row["topic"] for row in held}


def _has_five(place: dict[str, str]) -> bool:
    return len(_deals(place)) == 5


def _deals(place: dict[str, str]) -> list[bytes]:
    try:
        return sorted(
            row["body"] for row in read(["topic", "queue_id", "queue_offset", "body"], subscribe="deals", **place)
        )
    except ConfigError:
        return []  # nothing of it is committed yet


def test_a_stopped_broker_s_folder_is_read_as_well(apache_peer: ApachePeer) -> None:
    with SyncProducer(apache_peer.namesrv_address) as producer:
        producer.send_many([Message("stopped", b"%d" % number) for number in range(20)])
    wait_dispatched(apache_peer.broker_address)
    live = read(path=str(apache_peer.store))
    assert len([row for row in live if row["topic"] == "stopped"]) == 20
    apache_peer.stop_broker()
    try:
        assert read(path=str(apache_peer.store)) == live
    finally:
        apache_peer.start_broker()
