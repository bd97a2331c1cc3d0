"""A slave becomes the master: what it needs, what it goes on with, and what becomes of the master of before."""

from __future__ import annotations

from pathlib import Path

from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from tests.appliance.broker.replication.brokers import group, is_master, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import log_of
from tests.waiting import until


async def test_the_master_of_before_comes_back_as_a_slave_without_its_tail(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers:
        async with brokers.broker("one") as one, brokers.broker("two", broker_id=1) as two:
            await send(one, 20)
            await same_logs(one, two)
            common = one.controller.store.max_physical_offset
            answer = await promote(two)
            assert answer.code == 1 and "its master answers" in (answer.remark or "")
        async with brokers.broker("one") as one:
            await send(one, 7, b"not copied %d ")
            uncopied_end = one.controller.store.max_physical_offset
        async with brokers.broker("two", broker_id=1) as two:
            answer = await promote(two)
            assert answer.code == 0, answer.remark
            await until(lambda: is_master(two))
            assert two.controller.standing.standing.epochs.current == 2
            await send(two, 30)
            async with brokers.broker("one") as one:
                await until(lambda: is_slave(one))
                await same_logs(one, two)
                assert log_of(one.controller) == log_of(two.controller)
                assert one.controller.config.broker_id == 1
        kept = list(tmp_path.glob("one/store.cut-*"))
        assert len(kept) == 1
        with StoreFolder(kept[0]) as folder:
            rows = [row for row in dump_records(folder, Selection(), with_body=True) if "body" in row]
        assert rows[0]["physicalOffset"] == common
        assert rows[-1]["physicalOffset"] + rows[-1]["storeSize"] == uncopied_end
        assert [row["body"] for row in rows] == [f"not copied {number} " for number in range(7)]


async def test_a_master_that_hears_of_a_later_epoch_takes_no_message_more(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers, brokers.broker("one") as one, brokers.broker("two", broker_id=1) as two:
        await send(one, 20)
        await same_logs(one, two)
        answer = await promote(two, force="true")  # though the master is there: two of them, for a moment
        assert answer.code == 0, answer.remark
        await until(lambda: is_master(two) and is_slave(one))
        await send(two, 5)
        await same_logs(one, two)
        assert log_of(one.controller) == log_of(two.controller)
        await until(lambda: not two.controller.standing.standing.untold)
