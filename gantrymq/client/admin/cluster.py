"""Admin calls about the cluster as the name servers know it: which brokers there are, and where."""

from __future__ import annotations

from gantrymq.client.admin.calls import AdminCalls
from gantrymq.errors import ConfigError
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode


class ClusterAdmin:
    """`admin.cluster`."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def info(self) -> ClusterInfo:
        """Clusters, their brokers, and the brokers' addresses."""
        answer = await self._calls.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return ClusterInfo.from_json(answer.body)

    async def masters(self, cluster: str | None = None) -> dict[str, str]:
        """Broker name to master's address, of one cluster or of all. Brokers without a master are left out.

        ConfigError when there is no such cluster.
        """
        info = await self.info()
        if cluster is not None and cluster not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise ConfigError(f"there is no cluster {cluster}; known: {known}")
        names = info.broker_addr_table if cluster is None else info.cluster_addr_table[cluster]
        found = {name: info.broker_addr_table[name].master_address for name in names if name in info.broker_addr_table}
        return {name: address for name, address in sorted(found.items()) if address is not None}
