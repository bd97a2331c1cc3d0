"""The keyword arguments of producers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from gantrymq.client.connection.compression import COMPRESS_FROM_BYTES, COMPRESS_LEVEL, Compression
from gantrymq.client.connection.option_checks import check_above_zero, check_at_least, check_share
from gantrymq.client.connection.options import ClientKeywords, ClientOptions
from gantrymq.client.connection.send_codec import MESSAGE_BYTES_MAX, QUEUES_OF_NEW_TOPIC
from gantrymq.client.interceptors import Interceptor, check_interceptors
from gantrymq.errors import ConfigError
from gantrymq.message.compression import CompressType, check_compress_type
from gantrymq.message.namespaces import Namespace
from gantrymq.message.topics import TRACE_TOPIC, check_group

DEFAULT_GROUP = "DEFAULT_PRODUCER"


class ProducerKeywords(ClientKeywords, total=False):
    """See ProducerOptions."""

    delivery_timeout_s: float
    retries: int | None
    retry_unless_send_ok: bool
    send_latency_fault_enable: bool
    linger_s: float
    batch_bytes: int
    buffer_bytes: int
    message_bytes_max: int
    new_topic_queues: int
    round_delays_up: bool
    compress_from_bytes: int
    compress_level: int
    compress_type: CompressType
    trace: bool
    trace_topic: str
    trace_sample: float
    interceptors: Sequence[Interceptor]


@dataclass(frozen=True, kw_only=True)
class ProducerOptions(ClientOptions):
    """What a producer is made with.

    MessageRejected when `group` can't be a group's name; WrongType and ConfigError for what else can't be meant.
    """

    group: str = DEFAULT_GROUP
    """The producer group."""
    delivery_timeout_s: float = 30.0
    """Seconds for a whole call: route, connections, tries and pauses. A call's timeout_s goes before."""
    retries: int | None = None
    """Further tries after the first; None: as many as the time allows."""
    retry_unless_send_ok: bool = False
    """A message that was stored, but not flushed or replicated as asked, goes once to each other broker."""
    send_latency_fault_enable: bool = False
    """Leave brokers alone for a while that were slow or failed."""
    linger_s: float = 0.0
    """Seconds that a batch of `send_soon` waits until it is full; 0: only while others are on their way."""
    batch_bytes: int = 64 * 1024
    """Bytes in a batch of `send_soon`, at most."""
    buffer_bytes: int = 32 * 1024 * 1024
    """Bytes that wait or are on their way in `send_soon`, at most; then it waits itself."""
    message_bytes_max: int = MESSAGE_BYTES_MAX
    """Larger bodies, in bytes, are refused: MessageRejected. As the broker's maxMessageSize."""
    new_topic_queues: int = QUEUES_OF_NEW_TOPIC
    """Queues of a topic that is made by its first message, as far as the broker's template has so many."""
    round_delays_up: bool = False
    """At a broker that has delay levels only (RocketMQ 4), `delay_seconds` and `deliver_at` wait for the next longer
    level, at most 2 h. False: MessageRejected, because it would deliver such a message at once."""
    compress_from_bytes: int = COMPRESS_FROM_BYTES
    """Smaller bodies, in bytes, travel as they are."""
    compress_level: int = COMPRESS_LEVEL
    """1 (fast) to 9 (small)."""
    compress_type: CompressType = "zlib"
    """zlib, which every client reads; lz4 or zstd with gantrymq[compression], for consumers that know them."""
    trace: bool = False
    """Tell `trace_topic` of messages sent."""
    trace_topic: str = TRACE_TOPIC
    """Where traces are sent."""
    trace_sample: float = 1.0
    """The share of the messages that is traced, 0 to 1, chosen by their ids: consumers with the same number choose the
    same."""
    interceptors: Sequence[Interceptor] = ()
    """Around every send, the first is the outermost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_group(Namespace(self.namespace).wrap(self.group))
        check_above_zero(self, "delivery_timeout_s")
        check_at_least(self, 0, "retries", "compress_from_bytes")
        check_at_least(self, 1, "message_bytes_max", "new_topic_queues")
        check_share(self, "trace_sample")
        if not 1 <= self.compress_level <= 9:
            raise ConfigError(f"compress_level={self.compress_level}: it must be from 1 to 9")
        check_compress_type(self.compress_type)
        check_interceptors(self.interceptors)

    @functools.cached_property
    def compression(self) -> Compression:
        """How bodies are packed."""
        return Compression(self.compress_type, self.compress_level, self.compress_from_bytes)
