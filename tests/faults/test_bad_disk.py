"""A disk that is slow, fails, or is full to the last byte, under a broker: the reason is told, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gantrymq.errors import ResponseError
from tests.faults.kit.books import PATIENCE_S, TOPIC, Books, log_of, logged, small_files, until
from tests.faults.kit.small_disk import small_disk
from tests.faults.kit.strace import injected
from tests.harness import LocalCluster

SYNCS = "fdatasync,fsync"


def cluster_at(home: Path, **properties: str) -> LocalCluster:
    return LocalCluster(home, broker_properties=small_files(**properties))


async def told(books: Books, words: str) -> None:
    """Send until the broker says what is wrong, in request 28, which the Overview asks for each second."""

    async def says_so() -> bool:
        return words in await books.trouble()

    await _sending_until(books, says_so)


async def named(books: Books, cluster: LocalCluster, event: str) -> None:
    """Send until the log has this event: the broker looks each second, and what is slow may be over by then."""

    async def says_so() -> bool:
        return bool(logged(cluster, event))

    await _sending_until(books, says_so)


async def _sending_until(books: Books, says_so: Callable[[], Awaitable[bool]]) -> None:
    sending = asyncio.create_task(books.send(1))
    async with asyncio.timeout(PATIENCE_S):
        while not await says_so():
            await asyncio.sleep(0.05)
            if sending.done():  # and what it waited for was over before this process looked
                await sending
                sending = asyncio.create_task(books.send(1))
    await sending


async def cleared(books: Books) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await books.trouble():
            await asyncio.sleep(0.05)


async def test_a_slow_disk_is_told_and_acknowledges_nothing_that_it_has_not(tmp_path: Path) -> None:
    with cluster_at(tmp_path / "cluster", flushDiskType="SYNC_FLUSH", syncFlushTimeout="1000") as cluster:
        async with Books(cluster) as books:
            await books.send(20)
            with injected(cluster.broker.pid, SYNCS, "delay_enter=3000000", tmp_path / "strace.log"):
                await told(books, "the disk is slow: a sync of the commit log has lasted")
                assert books.uncertain, "a message was acknowledged before the disk had it"
                await named(books, cluster, "disk_slow")
            await until(lambda: bool(logged(cluster, "disk_took_log")), "and that it is over")
            await books.send(20)
            await books.go_on()  # a real disk may be as slow at times
            await cleared(books)
            cluster.kill_broker()
            assert not books.refused
        books.check()


async def test_a_disk_that_takes_no_more_is_told_and_everything_acknowledged_is_there(tmp_path: Path) -> None:
    with cluster_at(tmp_path / "cluster", flushDiskType="SYNC_FLUSH") as cluster:
        async with Books(cluster) as books:
            await books.send(20)
            known = len(books.acknowledged)
            with injected(cluster.broker.pid, SYNCS, "error=EIO", tmp_path / "strace.log"):
                await books.send(3)
                await told(books, "the disk did not take the commit log ([Errno 5] Input/output error)")
            await books.send(3)  # what the kernel has dropped nobody knows: only a restart helps
            assert len(books.acknowledged) == known > 0
            assert "did not take the commit log" in books.refused[-1] and "until a restart" in books.refused[-1]
            assert logged(cluster, "sync_error")
            cluster.stop_broker()
            cluster.start_broker()
            await books.go_on()
            assert len(books.acknowledged) == known + 1
        cluster.stop_broker()
        books.check()


@pytest.mark.parametrize("others", ["others", "itself"])
async def test_a_disk_full_to_the_last_byte_counts_exactly(tmp_path: Path, others: str) -> None:
    """Full twice: once the broker is killed while nothing can be written, once it is stopped in order."""
    with small_disk(tmp_path / "disk", 64 << 20) as disk, cluster_at(disk.path / "cluster") as cluster:
        async with Books(cluster) as books:
            await books.send(50, 20_000)
            for stop in (cluster.kill_broker, cluster.stop_broker):
                if others == "others":
                    disk.leave(0)
                async with asyncio.timeout(PATIENCE_S):
                    while len(books.refused) + len(books.uncertain) < 5:
                        await books.send(20, 20_000)
                assert any("No space left" in remark or "is full" in remark for remark in books.refused), books.refused
                trouble = await books.trouble()
                assert "No space left" in trouble or "is full" in trouble
                stop()
                if others == "itself":
                    break
                disk.empty()
                cluster.start_broker()
                books.refused.clear()
                await books.go_on()
                before = len(books.acknowledged)
                await books.send(50, 20_000)
                assert len(books.acknowledged) == before + 50
        cluster.stop_broker()
        books.check()


async def test_files_that_can_not_be_read_are_an_error_in_words_and_no_loss(tmp_path: Path) -> None:
    """Reads of the queues' files fail (EIO): pulls are answered, the broker lives, and later all is read."""
    with cluster_at(tmp_path / "cluster") as cluster:
        async with Books(cluster) as books:
            await books.send(300)
            queue_file = cluster.store / "consumequeue" / TOPIC / "0" / f"{0:020d}"
            await until(lambda: queue_file.exists() and bool(queue_file.read_bytes()[6000 - 8 : 6000]), "units on disk")
            cluster.stop_broker()
            cluster.start_broker()  # nothing is left in memory
            await books.go_on()
            with injected(cluster.broker.pid, "pread64", "error=EIO", tmp_path / "strace.log"):
                with pytest.raises(ResponseError):
                    await books.read(timeout_s=PATIENCE_S)
                assert cluster.broker.exit_code is None
            await until(lambda: "Input/output error" in log_of(cluster), "the log names the error")
            assert await books.read(timeout_s=PATIENCE_S) == books.acknowledged
            await books.go_on()
        cluster.stop_broker()
        books.check()
