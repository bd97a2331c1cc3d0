"""Two promotions apart from each other: the second takes a later number, and cuts nothing without a person."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import ConfigError
from tests.faults.kit.replicas import FILES, TOPIC, Replica, is_same, promote_checked, runtime_info
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until


def settle(keep: LocalCluster) -> None:
    with SyncAdminClient(keep.namesrv_address, timeout_s=5) as admin:
        admin.succession.settle(keep.broker_name, keep.broker_address, accept_unknown=True)


@pytest.mark.slow
def test_the_second_of_two_promotions_is_a_later_epoch_and_takes_nothing_away(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "master", broker_properties=FILES | {"slavesEnable": "true"}) as master:
        first, second = (Replica(tmp_path / f"slave{number}", master, number, FILES) for number in (1, 2))
        serving = [master]
        with Recorder("p", TOPIC, lambda: serving[0].broker_address if serving else "") as recorder:
            for slave in (first, second):
                slave.start_broker()
            wait_until(lambda: runtime_info(first).get("inSyncSetTold", "").count(",") == 1)
            recorder.more()
            serving.clear()
            wait_until(lambda: is_same(master, first) and is_same(master, second))
            os.kill(second.broker.pid, signal.SIGSTOP)
            master.kill_broker()
            with pytest.raises(ConfigError, match="does not answer"):
                promote_checked(first)
            assert promote_checked(first, accept_unknown=True).epoch == 2
            serving.append(first)
            recorder.more(200)
            serving.clear()
        first.kill_broker()
        os.kill(second.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(second).get("slaveState") == "connecting")
        with pytest.raises(ConfigError, match="epoch 2 has begun"):
            promote_checked(second)
        assert promote_checked(second, accept_unknown=True).epoch == 3
        before = read_log("first", first.store)
        first.start_broker()
        wait_until(lambda: runtime_info(first).get("slaveState") == "would lose confirmed messages")
        logs = [read_log(peer.broker_address, peer.store) for peer in (first, second)]
        assert before.data == logs[0].data
        assert recorder.count(Answer.ACKNOWLEDGED) > 200
        assert [found.kind for found in check(recorder.sends, logs, first.broker_address)] == []
        assert {found.kind for found in check(recorder.sends, logs, second.broker_address)} == {"lost"}
        settle(second)
        wait_until(lambda: runtime_info(first).get("slaveState") == "copying")
        wait_until(lambda: runtime_info(first)["commitLogMaxOffset"] == runtime_info(second)["commitLogMaxOffset"])
        first.stop()
        second.stop()
    logs = [read_log(peer.broker_address, peer.store) for peer in (first, second)]
    assert logs[0].data == logs[1].data
    assert len(list(tmp_path.glob("slave1/store.cut-*"))) == 1
