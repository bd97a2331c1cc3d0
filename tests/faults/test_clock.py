"""The clock is set while a broker runs, by days ahead and back: nothing is lost, and its log says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import missing
from tests.faults.kit.books import Books, clocked_by, library, logged, small_files, until
from tests.harness import LocalCluster

HOURS = ";".join(f"{hour:02d}" for hour in range(24))


class ClockedCluster(LocalCluster):
    """Its processes take the time of day from a file; the time that has passed is the real one."""

    def __init__(self, home: Path, library_path: Path, **properties: str) -> None:
        super().__init__(home, broker_properties=properties)
        self._library = library_path
        self._clock = home.parent / "clock"
        self.set_clock("+0")

    def set_clock(self, ahead: str) -> None:
        self._clock.write_text(f"{ahead}\n")

    def _env(self) -> dict[str, str]:
        return super()._env() | clocked_by(self._library, self._clock)


@pytest.fixture
def cluster(tmp_path: Path) -> ClockedCluster:
    found = library("*/faketime/libfaketime.so.1")
    if found is None:
        missing("libfaketime", "a clock that is set needs it (Debian: faketime)")
    assert found is not None
    return ClockedCluster(tmp_path / "cluster", found, **small_files(deleteWhen=HOURS, cleanResourceInterval="100"))


async def test_a_clock_set_ahead_by_days_and_back_loses_nothing(cluster: ClockedCluster) -> None:
    with cluster:
        async with Books(cluster) as books:
            await books.send(200, 20_000)
            cluster.set_clock("+4d")  # every file is older than the 72 hours it is kept
            await until(lambda: bool(logged(cluster, "clock_set")), "the broker notices its clock")
            await books.admin.brokers.delete_expired_commit_log(cluster.broker_address)
            await until(lambda: bool(logged(cluster, "clock_ahead")), "the cleaner looks at the clock")
            await books.send(100, 20_000)
            await books.admin.brokers.delete_expired_commit_log(cluster.broker_address)
            cluster.set_clock("-1h")
            await until(lambda: len(logged(cluster, "clock_set")) > 1, "the broker notices its clock again")
            await books.send(100, 20_000)
            assert not books.refused and not books.uncertain
            cluster.kill_broker()
            cluster.start_broker()
            await books.go_on()
            assert len(books.acknowledged) == 401
            assert not logged(cluster, "commit_log_file_deleted")
        cluster.stop_broker()
        books.check()
