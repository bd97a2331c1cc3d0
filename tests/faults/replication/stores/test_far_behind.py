"""One of two slaves is far behind and comes in sync again, while the master serves and deletes what it has copied.

pytest tests/faults/replication/stores/test_far_behind.py -s --rounds 10000 --timeout 0

The number is of megabytes; the disk needs three times that.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.load_spec import LoadSpec
from tests.faults.kit.replicas import FILES, SYNC, TOPIC, Replica, is_same, runtime_info
from tests.faults.replication.recorder import Recorder
from tests.faults.replication.stores.store_files import delete_expired, log_files
from tests.harness import LocalCluster
from tests.waiting import Beside, wait_until

BEHIND_MB = 24  # usual; --rounds says another number
FILLED, QUEUES = "Filled", 8
FILL_S = 2.0  # of each load that fills
SENDS = 200  # for each figure
GROWTH_BYTES = 48 << 20  # of either process, however far behind: a frame, a block to read into, tables


def in_sync(master: LocalCluster) -> int:
    """How many slaves are."""
    names = runtime_info(master).get("slavesInSyncSet", "none")
    return 0 if names == "none" else names.count(",") + 1


def end_of(peer: LocalCluster) -> int:
    return int(runtime_info(peer).get("commitLogMaxOffset", "0"))


def fill(master: LocalCluster, megabytes: int) -> None:
    """With batches of a compiled load: millions of single sends would take hours."""
    rpc.create_topic(master.broker_address, FILLED, QUEUES)
    load, wanted = LoadProgram(generator_program()), end_of(master) + (megabytes << 20)
    while (left := wanted - end_of(master)) > 0:
        spec = LoadSpec(
            kind="batch", address=master.broker_address, topic=FILLED, queue_count=QUEUES, connections=2,
            body_bytes=4096, warm_s=0.0, measure_s=FILL_S, messages_max=left // 4096 + 1,
        )  # fmt: skip
        assert load.run(spec).acknowledged > 0


class Watch(Beside):
    """What both processes hold while its block runs, the stores' files left out, in bytes: at first, and at most."""

    def __init__(self, peers: dict[str, LocalCluster]) -> None:
        super().__init__(self._look, "watch")
        self.peers = peers
        self.first: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def grown(self) -> dict[str, int]:
        return {name: self.most[name] - first for name, first in self.first.items()}

    def _look(self) -> None:
        while True:
            for name, peer in self.peers.items():
                held = peer.broker.memory(peer.store).pss_bytes
                self.first.setdefault(name, held)
                self.most[name] = max(self.most.get(name, 0), held)
            if self.ends.wait(0.2):
                return


def pauses_ms(times: Sequence[float]) -> str:
    """Between accepted sends: median and the 99th of 100."""
    pauses = sorted((later - earlier) * 1000 for earlier, later in itertools.pairwise(times))
    return f"{statistics.median(pauses):.1f} and {pauses[len(pauses) * 99 // 100]:.1f} of {len(pauses)}"


@pytest.mark.slow
def test_a_slave_far_behind_comes_in_sync_while_the_master_serves_and_deletes_what_it_has(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    behind = request.config.getoption("--rounds", default=None) or BEHIND_MB
    # A starved slave is waited for, and no send refused for want of it.
    patient = {"slaveTimeout": "600000", "haHousekeepingInterval": "600000"}
    files = {"mappedFileSizeCommitLog": str((1 if behind < 1000 else 64) << 20)} | patient
    with LocalCluster(tmp_path / "master", broker_properties=SYNC | files) as master, contextlib.ExitStack() as stack:
        slaves = [Replica(tmp_path / f"slave{number}", master, number, FILES | files) for number in (1, 2)]
        for slave in slaves:
            stack.callback(slave.stop)
            slave.start_broker()
        _come_in_sync(master, slaves[1], behind)


def _come_in_sync(master: LocalCluster, slave: LocalCluster, behind: int) -> None:
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        sent = recorder.acknowledged_at
        wait_until(lambda: in_sync(master) == 2)
        recorder.more()
        begin = end_of(slave)
        slave.kill_broker()
        wait_until(lambda: in_sync(master) == 1)
        fill(master, behind)
        before = len(sent)
        recorder.more(SENDS)
        slave.launch_broker()
        started, meanwhile = time.monotonic(), len(sent)
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")
        with Watch({"master": master, "slave": slave}) as watch:
            for number in range(4):
                has = begin + ((number + 1) * behind // 5 << 20)
                wait_until(lambda has=has: end_of(slave) > has, within_s=60 + behind)  # type: ignore[misc]
                delete_expired(master, 1)
            wait_until(lambda: in_sync(master) == 2, within_s=60 + behind)
        seconds, together = time.monotonic() - started, len(sent)
        recorder.more(SENDS)
        times = sent[before:meanwhile], sent[meanwhile:together], sent[together:]
    assert not [send for send in recorder.sends if send.queue is None], "a send was refused or not answered"
    print(f"{behind} MiB behind: in sync after {seconds:.1f} s, {behind / seconds:.0f} MiB/s")
    for name, first in watch.first.items():
        print(f"the {name} held {first >> 20} MiB at first and {watch.most[name] >> 20} at most")
    for name, each in zip(("without it", "meanwhile", "in sync"), times, strict=True):
        print(f"ms from accepted send to accepted send, {name}: median and 99 % {pauses_ms(each)}")
    assert max(watch.grown().values()) < GROWTH_BYTES
    wait_until(lambda: is_same(master, slave))
    _assert_same_bytes(master, slave, recorder)


def _assert_same_bytes(master: LocalCluster, slave: LocalCluster, recorder: Recorder) -> None:
    """File by file: nothing so large is read at once."""
    files = {path.name: path for path in log_files(master)}
    assert len(files) > 1
    for name, path in files.items():
        assert path.read_bytes() == (slave.store / "commitlog" / name).read_bytes(), name
    file_bytes, kept = path.stat().st_size, min(map(int, files))
    for send in recorder.sends:
        if send.physical_offset >= kept:
            at = send.physical_offset % file_bytes
            with files[f"{send.physical_offset - at:020d}"].open("rb") as file:
                file.seek(at)
                assert send.body in file.read(len(send.body) + 300)
