"""While its master is away, consumers read from a slave of ours, and go on when it is promoted: Java client and SDK."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import ConsumeFrom, ConsumeResult, MessageExt, SyncPushConsumer
from tests.faults.kit.replicas import promote
from tests.harness import LocalCluster
from tests.interop.clients import JavaClient
from tests.interop.stores.copied_log import TOPIC, bodies, expected, log_end, send, topics_of, wait_for

COUNT = 40
ALL = 60  # with those that the new master takes
FILES = {"mappedFileSizeCommitLog": str(1 << 20)}


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[LocalCluster]:
    """A slave that has everything, its master killed."""
    properties = FILES | {"slavesEnable": "true", "brokerRole": "SYNC_MASTER"}
    with LocalCluster(tmp_path / "master", broker_properties=properties) as master:
        slave = LocalCluster(tmp_path / "slave", broker_properties=FILES)
        slave.join_as_slave(master)
        try:
            slave.start_broker()
            send(master, 0, COUNT)
            wait_for(lambda: 0 < log_end(master) == log_end(slave), "the slave has everything")
            wait_for(lambda: TOPIC in topics_of(slave), "the slave has the topic")
            master.kill_broker()
            assert bodies(slave) == expected(0, COUNT)
            yield slave
        finally:
            slave.stop()


def test_consumers_read_from_a_slave_while_the_master_is_away_and_when_it_is_the_master(
    alone: LocalCluster, java: JavaClient
) -> None:
    found: set[str] = set()

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        found.update(message.body.decode() for message in messages)
        return ConsumeResult.SUCCESS

    ours = SyncPushConsumer(
        alone.namesrv_address, group="our-readers", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    ours.subscribe(TOPIC)
    with ours, java.consume(alone.namesrv_address, TOPIC, "java-readers") as consumer:

        def got() -> set[str]:
            return {fields[5] for fields in consumer.lines("GOT")}

        consumer.wait_for(lambda: len(got()) >= COUNT, "all messages from the slave")
        wait_for(lambda: len(found) >= COUNT, "all messages from the slave")
        assert got() == found == {body.decode() for body in expected(0, COUNT)}
        promote(alone)
        send(alone, COUNT, ALL)
        wanted = {body.decode() for body in expected(0, ALL)}
        consumer.wait_for(lambda: got() >= wanted, "all messages from the new master")
        wait_for(lambda: found >= wanted, "all messages from the new master")
        assert got() == found == wanted
