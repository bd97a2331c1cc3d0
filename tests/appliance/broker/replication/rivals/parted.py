"""Two brokers of one name that each began the same epoch, where neither heard of the other."""

from __future__ import annotations

from pathlib import Path

from appliance.bench.frames import send_fields
from appliance.broker.life import BrokerLife
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import Group, group, is_master, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.peer import connected
from tests.waiting import until


async def refuses_sends(broker: BrokerLife) -> bool:
    async with connected(broker.port) as peer:
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"body")
    return answer.code == ResponseCode.SERVICE_NOT_AVAILABLE


def has_rival(broker: BrokerLife) -> bool:
    return broker.controller.standing.standing.rival is not None


async def part(brokers: Group, folder: Path) -> None:
    """Have "two" and "three" begin epoch 2 each, where neither hears of the other, and take messages in it."""
    async with (
        brokers.broker("one") as one,
        brokers.broker("two", broker_id=1) as two,
        brokers.broker("three", broker_id=2) as three,
    ):
        await send(one, 20)
        await same_logs(one, two)
        await same_logs(one, three)
    for name, number, count in (("two", 1, 7), ("three", 2, 9)):
        async with group(folder / name) as apart:
            alone = Group(apart.namesrv_address, folder)
            async with alone.broker(name, broker_id=number) as promoted:
                answer = await promote(promoted, force="true")
                assert answer.code == 0, answer.remark
                await until(lambda promoted=promoted: is_master(promoted))
                assert promoted.controller.standing.standing.epochs.current == 2
                await send(promoted, count, name.encode() + b" %d")
