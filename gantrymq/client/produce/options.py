"""The keyword arguments of producers."""

from __future__ import annotations

from dataclasses import dataclass

from gantrymq.client.connection.options import ClientKeywords, ClientOptions
from gantrymq.client.connection.send_codec import COMPRESS_FROM_BYTES
from gantrymq.message.topics import TRACE_TOPIC, check_group

DEFAULT_GROUP = "DEFAULT_PRODUCER"


class ProducerKeywords(ClientKeywords, total=False):
    """See ProducerOptions."""

    timeout_s: float
    retries: int
    compress_from_bytes: int
    trace: bool
    trace_topic: str


@dataclass(frozen=True, kw_only=True)
class ProducerOptions(ClientOptions):
    """What a producer is made with. MessageRejected when `group` can't be a group's name."""

    group: str = DEFAULT_GROUP
    timeout_s: float = 3.0  # of a whole call, further tries included
    retries: int = 2  # further tries after the first
    compress_from_bytes: int = COMPRESS_FROM_BYTES  # smaller bodies travel as they are
    trace: bool = False  # tell `trace_topic` of every message sent
    trace_topic: str = TRACE_TOPIC

    def __post_init__(self) -> None:
        check_group(self.group)
