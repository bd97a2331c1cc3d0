"""Messages for a time (delay_seconds, deliver_at) at brokers that know delay levels only, such as RocketMQ 4's.

Such a broker stores the message, answers SEND_OK and delivers it at once. So a message for a time is sent only to a
broker whose answer to this client's heartbeat says that it keeps times; otherwise it is rejected before it is sent, or
gets the next longer delay level if the producer's `round_delays_up` says so. Decided here, without I/O.
"""

from __future__ import annotations

import copy

from gantrymq.client.connection.send_codec import Outgoing
from gantrymq.errors import MessageRejected
from gantrymq.message import properties as names
from gantrymq.message.delay_levels import DELAYS_S, level_of
from gantrymq.message.sysflag import TRANSACTION_MASK
from gantrymq.remoting.codes import TIMES_KEPT_FIELD, VERSION_WITH_TIMES
from gantrymq.remoting.command import RemotingCommand

# As brokers look for them: the first of these that the message has, and the seconds in its unit.
_DELAYS = ((names.TIMER_DELAY_SEC, 1.0), (names.TIMER_DELAY_MS, 0.001))


def keeps_times(greeting: RemotingCommand | None) -> bool:
    """Whether the broker that answered a heartbeat so keeps messages until any time. False while it is not known."""
    return greeting is not None and (TIMES_KEPT_FIELD in greeting.ext_fields or greeting.version >= VERSION_WITH_TIMES)


def at_level(outgoing: Outgoing, address: str, now_s: float) -> Outgoing:
    """The message with a delay level, not shorter than what it asks for from now on (seconds since the epoch).

    MessageRejected when no level is that long, when its time is no number, or when it is in a transaction."""
    if outgoing.sys_flag & TRANSACTION_MASK:
        raise _rejected(address, "A transaction has no delay level")
    properties = names.decode_properties(outgoing.properties)
    try:
        delay_s = _delay_s(properties, now_s)
    except ValueError:
        raise _rejected(address, "The time in the message's properties is not a number") from None
    if delay_s > DELAYS_S[-1]:
        raise _rejected(address, f"Its longest delay level is {DELAYS_S[-1]} s, the message asks for {delay_s:.0f} s")
    kept = {name: value for name, value in properties.items() if name not in names.TIMERS}
    if delay_s > 0:
        kept[names.DELAY] = str(level_of(delay_s))
    levelled = copy.copy(outgoing)
    levelled.properties, levelled.is_timed = names.encode_properties(kept), False
    return levelled


def _delay_s(properties: dict[str, str], now_s: float) -> float:
    for name, unit_s in _DELAYS:
        if name in properties:
            return int(properties[name]) * unit_s
    return int(properties[names.TIMER_DELIVER_MS]) / 1000 - now_s


def rejected(address: str) -> MessageRejected:
    """The error of a message for a time that this broker would deliver at once."""
    return _rejected(address, "Use delay_level, or a producer with round_delays_up=True")


def _rejected(address: str, advice: str) -> MessageRejected:
    return MessageRejected(
        f"broker {address} has delay levels only (RocketMQ 4): it would deliver a message with delay_seconds or "
        f"deliver_at at once. {advice}."
    )
