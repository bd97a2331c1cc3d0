"""The keyword arguments of PopConsumer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gantrymq.client.connection.option_checks import check_above_zero, check_at_least
from gantrymq.client.consume.options import GroupKeywords, GroupOptions
from gantrymq.client.interceptors import Interceptor, check_interceptors
from gantrymq.errors import ConfigError

BATCH_MAX = 32  # of one pop, RocketMQ's own limit
INVISIBLE_S_MAX = 12 * 3600.0  # likewise


class PopConsumerKeywords(GroupKeywords, total=False):
    """See PopConsumerOptions."""

    batch_size: int
    invisible_s: float
    renew_for_s: float
    held_max: int
    ordered: bool
    suspend_s: float
    max_reconsume_times: int | None
    close_wait_s: float
    interceptors: Sequence[Interceptor]


@dataclass(frozen=True, kw_only=True)
class PopConsumerOptions(GroupOptions):
    """What a POP consumer is made with.

    ConfigError when a number is out of its range. With LAST_OFFSET a new group reads a queue that is all young from its
    first message.
    """

    batch_size: int = 1
    """Messages a poll returns at most, 1 to 32: other members get none of them meanwhile."""
    invisible_s: float = 60.0
    """How long a message that was polled is leased, up to 12 hours: when this process ends without a word, others get
    its messages after that time."""
    renew_for_s: float = 900.0
    """Leases are renewed for so long after the poll, in seconds; 0: never. Then the message is delivered again."""
    held_max: int = 1000
    """Messages that were polled and are not acknowledged: `poll` returns no further ones."""
    ordered: bool = False
    """A queue's messages in their order: further ones come when those that were polled of it are acknowledged. All
    members of the group say the same."""
    suspend_s: float = 1.0
    """With `ordered`, `serve` and `run`: seconds until a failed message is tried again."""
    max_reconsume_times: int | None = None
    """With `ordered`: how often a message is delivered again before it is a dead letter; None: for ever. Otherwise the
    group's setting at the broker counts."""
    close_wait_s: float = 10.0
    """With `serve` and `run`: seconds that listener calls in progress have to end."""
    interceptors: Sequence[Interceptor] = ()
    """With `serve` and `run`: around every listener call, the first is the outermost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_reconsume_times is not None and not self.ordered:
            raise ConfigError("max_reconsume_times is for ordered=True: otherwise the group's setting counts")
        check_at_least(self, 1, "batch_size", "held_max")
        check_at_least(self, 0, "renew_for_s", "close_wait_s", "suspend_s", "max_reconsume_times")
        check_above_zero(self, "invisible_s")
        if self.batch_size > BATCH_MAX:
            raise ConfigError(f"batch_size={self.batch_size}: it must be at most {BATCH_MAX}")
        if self.invisible_s > INVISIBLE_S_MAX:
            raise ConfigError(f"invisible_s={self.invisible_s}: it must be at most {INVISIBLE_S_MAX:g}")
        check_interceptors(self.interceptors)
