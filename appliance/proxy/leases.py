"""What brokers are asked about the deliveries of one session's clients; see gantrymq.client.pop.pop_calls."""

from __future__ import annotations

from appliance.proxy.brokers import BrokerSession
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code
from gantrymq.client.pop import pop_calls
from gantrymq.client.pop.pop_calls import Delivery, Wanted
from gantrymq.message.pop_handle import PopHandle


def handle_of(text: str) -> PopHandle:
    """A client's receipt handle. Refused when it is none."""
    try:
        return PopHandle.parse(text)
    except ValueError as exc:
        raise Refused(Code.INVALID_RECEIPT_HANDLE, "not a receipt handle of a proxy") from exc


async def pop(session: BrokerSession, broker_name: str, wanted: Wanted) -> list[Delivery]:
    """Messages of one broker, on a connection where no send waits behind it."""
    return await pop_calls.pop(session.pops, session.address(broker_name), broker_name, wanted)


async def acknowledge(session: BrokerSession, group: str, topic: str, handle: PopHandle) -> None:
    await pop_calls.acknowledge(session.client.calls, session.address(handle.broker), group, topic, handle)


async def change(session: BrokerSession, group: str, topic: str, handle: PopHandle, invisible_ms: int) -> PopHandle:
    address = session.address(handle.broker)
    return await pop_calls.change_invisible_time(session.client.calls, address, group, topic, handle, invisible_ms)


async def bury(session: BrokerSession, group: str, topic: str, handle: PopHandle, message_id: str) -> None:
    address = session.address(handle.broker)
    await pop_calls.bury(session.client.calls, address, group, topic, handle, message_id)
