"""What one request may ask for at most, and what one connection may create in a minute, where RocketMQ has no limit.

Time is shared by what each connection costs (appliance/process/fair_queue.py); but a message of four thousand keys
costs most of its time later and elsewhere, in the index, and a hundred thousand topics cost every client: in routes, in
registrations, in files. Each limit is a setting, and each refusal names it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.settings.roles import BrokerConfig
from gantrymq.message.batch import HEAD as BATCH_HEAD
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import ResponseCode

UNIQUE_KEY_MESSAGES_MAX = 32  # of one look-up, even if the client asks for more (RocketMQ: defaultQueryMaxNum)
WINDOW_S = 60.0
CONNECTIONS_OF_AN_ADDRESS = 4  # so many connections' worth one address may create: who comes anew gains little
_KEYS_MARK = "KEYS\x01"
_KEYS_MARK_BYTES = _KEYS_MARK.encode()


def check_keys(config: BrokerConfig, topic: str, properties: str) -> None:
    """Raise BrokerError for a message with more keys than one may have. properties: encoded, of one message."""
    at = properties.find(_KEYS_MARK)
    while at >= 0:
        stop = properties.find("\x02", at)
        _check_count(config, topic, properties.count(" ", at, len(properties) if stop < 0 else stop) + 1)
        at = properties.find(_KEYS_MARK, stop) if stop >= 0 else -1


def check_batch_keys(config: BrokerConfig, topic: str, body: bytes) -> None:
    """The same for each message of a batch. A body that is no batch is left to who stores it."""
    if _KEYS_MARK_BYTES not in body or body.count(b" ") < config.message_keys_max:
        return
    at, end = 0, len(body)
    while at + BATCH_HEAD.size <= end:
        stop = at + BATCH_HEAD.size + BATCH_HEAD.unpack_from(body, at)[-1]
        at = stop + 2 + int.from_bytes(body[stop : stop + 2])
        if not 0 <= stop < at <= end:
            return
        if body.count(b" ", stop + 2, at) >= config.message_keys_max:
            check_keys(config, topic, body[stop + 2 : at].decode(errors="replace"))


def _check_count(config: BrokerConfig, topic: str, count: int) -> None:
    """A trace message tells of up to a hundred messages, and its keys are the ids and keys of them all."""
    if count <= config.message_keys_max:
        return
    name, most = "messageKeysMax", config.message_keys_max
    if topic in (TRACE_TOPIC, config.trace_topic_name):
        name, most = "traceMessageKeysMax", max(most, config.trace_message_keys_max)
    if count > most:
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, f"the message has {count} keys: at most {name}={most}")


class CreationLimit:
    """How many topics and groups connections and addresses have created within a minute. clock: monotonic seconds."""

    def __init__(self, config: BrokerConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._since = clock()
        self._counts: Counter[str] = Counter()  # by connection and by address; as many as were created, at most twice

    def count(self, connection: ServerConnection, what: str) -> None:
        """One more is to be created. Raises BrokerError SYSTEM_BUSY when there were too many within this minute."""
        now = self._clock()
        if now - self._since >= WINDOW_S:
            self._since = now
            self._counts.clear()
        limit = self._config.created_a_minute_max
        peer = connection.remote_text
        host = peer.rpartition(":")[0]
        if self._counts[peer] >= limit or self._counts[host] >= CONNECTIONS_OF_AN_ADDRESS * limit:
            raise BrokerError(
                ResponseCode.SYSTEM_BUSY,
                f"{what} is not created: this client has created {min(self._counts[host], limit)} topics and groups "
                f"within a minute, at most createdAMinuteMax={limit}; create it with updateTopic or updateSubGroup, or "
                "try again later",
            )
        self._counts[peer] += 1
        self._counts[host] += 1

    def group(
        self, groups: SubscriptionGroupManager, connection: ServerConnection, name: str
    ) -> SubscriptionGroupConfig | None:
        """The group's settings; an unknown one is created if that is allowed. Raises BrokerError as `count`."""
        config = groups.configs.get(name)
        if config is not None:
            return config
        if self._config.auto_create_subscription_group:
            self.count(connection, f"group {name}")
        return groups.get(name)
