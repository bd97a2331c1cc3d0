"""A connection closed: its client leaves all groups, and its queue locks are free after a while."""

from __future__ import annotations

from appliance.broker.groups.client_connections import ClientConnections
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.remoting.connection import ServerConnection
from appliance.settings.roles import BrokerConfig


class Departures:
    """Takes closed connections out of everything that knows clients."""

    def __init__(
        self,
        config: BrokerConfig,
        producers: ProducerManager,
        consumers: ConsumerManager,
        client_connections: ClientConnections,
        proxied: ProxiedClients,
        locks: RebalanceLockManager,
    ) -> None:
        self._config = config
        self._producers = producers
        self._consumers = consumers
        self._client_connections = client_connections
        self._proxied = proxied
        self._locks = locks

    def connection_closed(self, connection: ServerConnection) -> None:
        """Forget the connection. Where its client held locks, its groups are told again once those are free."""
        self._producers.connection_closed(connection)
        groups = self._consumers.connection_closed(connection)
        self._proxied.connection_closed(connection)
        gone = self._client_connections.closed(connection)
        grace_s = self._config.queue_lock_grace_ms / 1000
        if grace_s >= 0:
            holders = [client_id for client_id in gone if self._locks.client_gone(client_id, grace_s)]
            if holders:
                self._consumers.notify_after(grace_s, groups)
