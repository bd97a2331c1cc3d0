"""What a client is told to do: how often to try, how long to wait, how much to take at once. Decided without I/O.

Its own settings come back, with these beside them; Java's client fails without a backoff strategy.
"""

from __future__ import annotations

import ipaddress

from google.protobuf.duration_pb2 import Duration

from appliance.proxy.protocol.definition_pb2 import (
    Address,
    AddressScheme,
    CustomizedBackoff,
    Endpoints,
    ExponentialBackoff,
    RetryPolicy,
    Settings,
)
from gantrymq.client.connection.send_codec import MESSAGE_BYTES_MAX
from gantrymq.message.delay_levels import DELAYS_S
from gantrymq.remoting.client import split_address

PRODUCER_ATTEMPTS = 3
RECEIVE_MAX = 32
POLL_SECONDS_MAX = 20


def answer_to(
    settings: Settings, *, retry_max_times: int = 16, is_ordered: bool = False, collector: Endpoints | None = None
) -> Settings:
    """The settings with what the proxy decides; retry_max_times: of the consumer group. collector: of metrics."""
    answer = Settings()
    answer.CopyFrom(settings)
    answer.metric.Clear()
    answer.metric.on = collector is not None
    if collector is not None:
        answer.metric.endpoints.CopyFrom(collector)
    if answer.WhichOneof("pub_sub") == "subscription":
        answer.backoff_policy.CopyFrom(consumer_backoff(retry_max_times))
        answer.subscription.fifo = is_ordered
        answer.subscription.receive_batch_size = RECEIVE_MAX
        answer.subscription.long_polling_timeout.CopyFrom(Duration(seconds=POLL_SECONDS_MAX))
    else:
        backoff = ExponentialBackoff(initial=Duration(nanos=10_000_000), max=Duration(seconds=1), multiplier=2.0)
        answer.backoff_policy.CopyFrom(RetryPolicy(max_attempts=PRODUCER_ATTEMPTS, exponential_backoff=backoff))
        answer.publishing.max_body_size = MESSAGE_BYTES_MAX
        answer.publishing.validate_message_type = True
    return answer


def collector_at(address: str) -> Endpoints | None:
    """host:port as clients read it; None for ""."""
    if not address:
        return None
    host, port = split_address(address)
    try:
        is_six = ipaddress.ip_address(host).version == 6
        scheme = AddressScheme.IPv6 if is_six else AddressScheme.IPv4
    except ValueError:
        scheme = AddressScheme.DOMAIN_NAME
    return Endpoints(scheme=scheme, addresses=[Address(host=host, port=port)])


def consumer_backoff(retry_max_times: int) -> RetryPolicy:
    """When a failed message comes again: after the delays of RocketMQ's levels."""
    waits = CustomizedBackoff(next=[Duration(seconds=int(seconds)) for seconds in DELAYS_S])
    return RetryPolicy(max_attempts=retry_max_times + 1, customized_backoff=waits)
