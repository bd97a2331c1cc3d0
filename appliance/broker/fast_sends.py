"""The broker's side of the fast path: what it borrows, and what it leaves to Python.

The compiled twin (appliance/fast_path) serves plain sends on the broker's own objects; here it gets them. Without a
compiled module, with access control, or where a store keeps filter bits beside its queues, there is none, and the
Python path serves everything.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.topics.send_target import SendTargets
from appliance.fast_path import loader
from appliance.remoting.connection import REQUEST_HEADER_BYTES_MAX, FastPath, ServerConnection
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from store.message_store import MessageStore

# (request code, opaque, header encoding, queue id, queue offset, physical offsets)
Unflushed = tuple[int, int, int, int, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the fast path borrows of the broker."""

    config: BrokerConfig
    store_config: MessageStoreConfig
    store: MessageStore
    send_targets: SendTargets
    send_answers: SendAnswers
    hold: PullRequestHold
    store_host: bytes
    cluster_property: bytes


def flushed_answers(
    answers: SendAnswers, connection: ServerConnection, told: bytes, waiting: Sequence[Unflushed], is_on_disk: bool
) -> None:
    """SYNC_FLUSH: write the answers of one read event when the disk has their messages, or why it has not."""
    if not is_on_disk:
        told = b"".join(
            answers.stored_batch(
                RemotingCommand(code, {}, b"", None, opaque, 0, "", 0, encoding),
                offsets,
                queue_id,
                queue_offset,
                ResponseCode.FLUSH_DISK_TIMEOUT,
            )
            for code, opaque, encoding, queue_id, queue_offset, offsets in waiting
        )
    connection.write(told)


def fast_sends(parts: Parts, *, frame_bytes_max: int) -> FastPath | None:
    """The fast path of a broker, None when there is none or when all of its sends are unusual."""
    module = loader.load(enabled=parts.config.fast_path_enable)
    if module is None or parts.store_config.consume_queue_ext_enable:
        return None
    fast_path: FastPath = module.FastPath(
        parts,
        flushed_answers=functools.partial(functools.partial, flushed_answers, parts.send_answers),
        frame_bytes_max=frame_bytes_max,
        header_bytes_max=REQUEST_HEADER_BYTES_MAX,
    )
    return fast_path
