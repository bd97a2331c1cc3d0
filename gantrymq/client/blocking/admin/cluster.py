"""cluster, for threads.

Written from gantrymq.client.admin.cluster, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.remoting.bodies import ClusterInfo


class SyncClusterAdmin(BlockingPart[ClusterAdmin]):
    """`admin.cluster`."""

    def info(self) -> ClusterInfo:
        """Clusters, their brokers, and the brokers' addresses."""
        return self._run(self._part().info())

    def masters(self, cluster: str | None = None) -> dict[str, str]:
        """Broker name to master's address, of one cluster or of all. Brokers without a master are left out.

        ConfigError when there is no such cluster.
        """
        return self._run(self._part().masters(cluster))
