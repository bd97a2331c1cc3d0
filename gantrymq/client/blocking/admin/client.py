"""SyncAdminClient: AdminClient for threads. Its parts are AdminClient's, in the modules beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from gantrymq.client.admin.calls import AdminKeywords
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.blocking.admin.accounts import SyncAccountAdmin
from gantrymq.client.blocking.admin.brokers import SyncBrokerAdmin
from gantrymq.client.blocking.admin.clients import SyncClientAdmin
from gantrymq.client.blocking.admin.cluster import SyncClusterAdmin
from gantrymq.client.blocking.admin.groups import SyncGroupAdmin
from gantrymq.client.blocking.admin.messages import SyncMessageAdmin
from gantrymq.client.blocking.admin.name_servers import SyncNameServerAdmin
from gantrymq.client.blocking.admin.offsets import SyncOffsetAdmin
from gantrymq.client.blocking.admin.succession import SyncSuccessionAdmin
from gantrymq.client.blocking.admin.topics import SyncTopicAdmin
from gantrymq.client.blocking.base import BlockingLife


class SyncAdminClient(BlockingLife):
    """Administers a cluster: `with SyncAdminClient("host:port;host:port") as admin: admin.topics.names()`.

    Takes AdminClient's arguments and has its parts, without `calls`. May be shared by threads.
    """

    _client: AdminClient

    def __init__(self, name_servers: str | Sequence[str], **keywords: Unpack[AdminKeywords]) -> None:
        super().__init__(lambda: AdminClient(name_servers, **keywords))
        self.cluster: SyncClusterAdmin = SyncClusterAdmin(lambda: self._client.cluster, self._run)
        self.brokers: SyncBrokerAdmin = SyncBrokerAdmin(lambda: self._client.brokers, self._run)
        self.name_servers: SyncNameServerAdmin = SyncNameServerAdmin(lambda: self._client.name_servers, self._run)
        self.clients: SyncClientAdmin = SyncClientAdmin(lambda: self._client.clients, self._run)
        self.topics: SyncTopicAdmin = SyncTopicAdmin(lambda: self._client.topics, self._run)
        self.groups: SyncGroupAdmin = SyncGroupAdmin(lambda: self._client.groups, self._run)
        self.offsets: SyncOffsetAdmin = SyncOffsetAdmin(lambda: self._client.offsets, self._run)
        self.messages: SyncMessageAdmin = SyncMessageAdmin(lambda: self._client.messages, self._run)
        self.accounts: SyncAccountAdmin = SyncAccountAdmin(lambda: self._client.accounts, self._run)
        self.succession: SyncSuccessionAdmin = SyncSuccessionAdmin(lambda: self._client.succession, self._run)
