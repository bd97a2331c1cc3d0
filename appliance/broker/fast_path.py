"""The broker's side of the fast path: what it borrows, and what it leaves to Python.

The compiled twin (appliance/fast_path) serves plain sends on the broker's own objects, and feeds queues and index from
plain records that a slave copies or a start reads; here it gets them. Without a compiled module, or where a store keeps
filter bits beside its queues, there is none, and the Python path does everything.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from appliance.acl.access import Access
from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.fast_pulls import FastPulls
from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.topics.send_target import SendTargets
from appliance.fast_path import loader
from appliance.remoting import lanes as lanes_module
from appliance.remoting.client_peer import COPIED_BYTES_MAX
from appliance.remoting.connection import MESSAGE_LANE, PULL_LANE, REQUEST_HEADER_BYTES_MAX, ServerConnection
from appliance.remoting.fast_path import FastPath, SocketReader
from appliance.remoting.lanes import Lanes
from appliance.settings.roles import BrokerConfig
from gantrymq.client.connection.broker_calls import PULL_READ_AGAIN
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from store.base.stats import SLOW_S
from store.index.service import PENDING_MAX
from store.message_store import MessageStore
from store.parts import StoreParts
from store.reader import FILTER_UNITS_MIN, UNITS_PER_LOOK
from store.startup.dispatch import PlainFeed

# (request code, opaque, header encoding, queue id, queue offset, physical offsets)
Waiting = tuple[int, int, int, int, int, tuple[int, ...]]


class Bounds(NamedTuple):
    """What the Python path decides by and the twin must, too. The twin is given them: it has no copies of its own."""

    pending_max: int = PENDING_MAX
    filter_units_min: int = FILTER_UNITS_MIN
    units_per_look: int = UNITS_PER_LOOK
    copied_bytes_max: int = COPIED_BYTES_MAX
    slow_s: float = SLOW_S
    read_again: int = PULL_READ_AGAIN


class FastPathParts(Protocol):
    """What the fast path borrows of the broker."""

    config: BrokerConfig
    store_config: MessageStoreConfig
    store: MessageStore
    send_targets: SendTargets
    send_answers: SendAnswers
    hold: PullRequestHold
    store_host: bytes
    cluster_property: bytes
    put_waits: PutWaits
    access: Access | None


def late_answers(
    answers: SendAnswers, connection: ServerConnection, told: bytes, waiting: Sequence[Waiting], code: ResponseCode
) -> None:
    """SYNC_FLUSH, SYNC_MASTER: write the answers of one read event. code: SUCCESS, or what was waited for in vain."""
    if code is not ResponseCode.SUCCESS:
        told = b"".join(
            answers.stored_batch(
                RemotingCommand(request_code, {}, b"", None, opaque, 0, "", 0, encoding),
                offsets,
                queue_id,
                queue_offset,
                code,
            )
            for request_code, opaque, encoding, queue_id, queue_offset, offsets in waiting
        )
    connection.write(told)


def fast_path_of(parts: FastPathParts, pulls: FastPulls | None, *, frame_bytes_max: int) -> FastPath | None:
    """The fast path of a broker, None when there is none or when all of its sends are unusual.

    pulls: None where pulls are not served, or not plain.
    """
    module = loader.load(enabled=parts.config.fast_path_enable)
    if module is None or parts.store_config.consume_queue_ext_enable:
        return None
    fast_path: FastPath = module.FastPath(
        parts,
        Bounds(),
        pulls=pulls,
        late_answers=functools.partial(functools.partial, late_answers, parts.send_answers),
        frame_bytes_max=frame_bytes_max,
        header_bytes_max=REQUEST_HEADER_BYTES_MAX,
    )
    parts.store.parts.log.warms_ahead = False
    return fast_path


def reader_of(fast_path: FastPath, lanes: Lanes) -> SocketReader | None:
    """What reads plain connections for a fast path of `fast_path_of`, which has loaded the module.

    None: there is no epoll here, or no descriptor for it; then the event loop reads.
    """
    module = loader.load()
    assert module is not None
    sends, pulls = lanes.by_name[MESSAGE_LANE], lanes.by_name[PULL_LANE]
    try:
        reader: SocketReader = module.FastReader(fast_path, lanes, sends, pulls, lanes_module)
    except OSError:
        return None
    return reader


def plain_feed_of(config: BrokerConfig, store_config: MessageStoreConfig, parts: StoreParts) -> PlainFeed | None:
    """What feeds a store from plain records of its log; None as in fast_path_of."""
    module = loader.load(enabled=config.fast_path_enable)
    if module is None or store_config.consume_queue_ext_enable:
        return None
    feed: PlainFeed = module.FastDispatch(parts, PENDING_MAX)
    return feed
