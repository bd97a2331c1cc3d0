"""A broker may take no more memory (a limit on its addresses) under load: it refuses in words, and loses nothing."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from tests.faults.kit.books import PATIENCE_S, Books, small_files
from tests.harness import LocalCluster

SPARE_BYTES = 6 << 20  # files of the log are mapped, a MiB each
BODY_BYTES = 100_000


def address_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[0]
    return int(pages) * resource.getpagesize()


async def test_a_broker_at_its_memory_limit_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", broker_properties=small_files()) as cluster:
        async with Books(cluster) as books:
            await books.send(50, BODY_BYTES)
            pid = cluster.broker.pid
            limits = resource.prlimit(pid, resource.RLIMIT_AS)
            resource.prlimit(pid, resource.RLIMIT_AS, (address_bytes(pid) + SPARE_BYTES, limits[1]))
            async with asyncio.timeout(PATIENCE_S):
                while len(books.refused) + len(books.uncertain) < 5:
                    await books.send(10, BODY_BYTES)
            assert cluster.broker.exit_code is None, cluster.broker.last_output()
            assert any("Cannot allocate memory" in remark for remark in books.refused), books.refused
            resource.prlimit(pid, resource.RLIMIT_AS, limits)
            await books.go_on()
            before = len(books.acknowledged)
            await books.send(50, BODY_BYTES)
            assert len(books.acknowledged) == before + 50
            cluster.kill_broker()
        books.check()
