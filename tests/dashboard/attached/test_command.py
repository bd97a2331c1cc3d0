"""`gantry up --attach`: the dashboard of a cluster that runs elsewhere, with no broker of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.harness import LocalCluster
from tests.visitor import admin_of
from tests.waiting import wait_until


@pytest.mark.slow
def test_the_command_shows_the_topics_of_that_cluster_and_starts_no_broker(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster:
        with SyncProducer(cluster.namesrv_address) as producer:
            producer.send(Message("Elsewhere", b"1"))
        with RunningAppliance(tmp_path / "data", "--attach", cluster.namesrv_address) as gantry:
            assert gantry.namesrv == cluster.namesrv_address
            assert gantry.workers() == []
            visitor = admin_of(gantry)
            wait_until(lambda: "Elsewhere" in visitor.get("/topics").text)
