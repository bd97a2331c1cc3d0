"""What a broker's settings mean for its gate, its accounts, and the account it uses itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from appliance.acl.access import Access, AccessOptions
from appliance.acl.account import PUB, SUB
from appliance.acl.account_book import AccountBook
from appliance.remoting.connection import ServerConnection
from appliance.remoting.pull_request import PullRequest
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message.record import split_record
from gantrymq.message.topics import TRACE_TOPIC, is_system_topic
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import Credentials
from store.base.config import MessageStoreConfig
from store.message_store import MessageStore


def account_book(config: BrokerConfig, store_config: MessageStoreConfig) -> AccountBook | None:
    """The accounts, None without aclEnable. Without a configured folder they stand beside the store."""
    if not config.acl_enable:
        return None
    home = config.accounts_home() or Path(store_config.root).parent
    return AccountBook(home, default_file=config.acl_file)


def access_gate(config: BrokerConfig, book: AccountBook | None, store: MessageStore) -> Access | None:
    """The gate before the lanes, None without access control."""
    if book is None:
        return None
    options = AccessOptions(config.acl_require_stamp, config.acl_stamp_window_ms)
    return Access(book, StoredTopics(store), options=options)


def may_send(access: Access | None) -> Callable[[ServerConnection, str], bool] | None:
    """Whether the account of a connection may send to a topic; None without access control."""
    if access is None:
        return None
    return lambda connection, topic: access.may_touch(connection, topic, PUB)


def may_still_pull(access: Access | None, connection: ServerConnection, request: RemotingCommand | PullRequest) -> bool:
    """Whether a pull that waited may be answered: its account may have lost the topic, or be gone, meanwhile."""
    return access is None or access.may_touch(connection, request.ext_fields.get("topic", ""), SUB)


def access_metrics(access: Access | None, book: AccountBook | None) -> dict[str, str]:
    """Rows for GET_BROKER_RUNTIME_INFO (28): our own keys, counts since the start."""
    if access is None or book is None:
        return {"aclEnable": "false"}
    return {
        "aclEnable": "true",
        "aclAccounts": str(len(book.current.by_key)),
        "aclDenied": str(access.denied.total()),
        "aclDeniedByReason": ",".join(f"{reason}:{count}" for reason, count in sorted(access.denied.items())) or "none",
        "aclUnstampedRequests": str(access.unstamped),  # signed ones that an eavesdropper could send again
    }


def own_credentials(config: BrokerConfig) -> Credentials | None:
    """The account that signs this broker's registrations. Raises ConfigError."""
    return Credentials.from_file(config.credentials_file) if config.credentials_file is not None else None


def outgoing_client(config: BrokerConfig, connect_timeout_s: float | None = None) -> RemotingClient:
    """What this broker asks other servers with; by default with the time to connect of its settings."""
    if connect_timeout_s is None:
        connect_timeout_s = config.connect_timeout_ms / 1000
    return RemotingClient(
        tls=config.outgoing_tls, credentials=own_credentials(config), connect_timeout_s=connect_timeout_s
    )


class StoredTopics:
    """Whose message stands at an offset: what access control asks before a client sees or moves it."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def topic_at(self, physical_offset: int) -> str | None:
        """The topic of the message stored there, None when no message starts there.

        A message that waits in one of the broker's own topics (delayed, or half) counts as one of the topic that it
        will appear in; the broker itself wrote that down.
        """
        data = self._store.message_bytes(physical_offset)
        if data is None:
            return None
        try:
            fields = split_record(data)
            topic = fields.topic.decode()
            if is_system_topic(topic) and topic != TRACE_TOPIC:
                real = keys.find_property(fields.properties, keys.REAL_TOPIC.encode())
                return real.decode() if real else topic
        except (RecordError, UnicodeDecodeError):
            return None
        return topic
