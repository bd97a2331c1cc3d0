"""name_servers, for threads.

Written from gantrymq.client.admin.name_servers, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from gantrymq.client.admin.name_servers import NameServerAdmin
from gantrymq.client.blocking.base import BlockingPart


class SyncNameServerAdmin(BlockingPart[NameServerAdmin]):
    """`admin.name_servers`."""

    @property
    def addresses(self) -> list[str]:
        """The addresses the AdminClient was given."""
        return self._part().addresses

    def config(self, address: str) -> dict[str, str]:
        """The settings a name server runs with, under RocketMQ's names."""
        return self._run(self._part().config(address))

    def update_config(self, address: str, changes: dict[str, str]) -> None:
        """Change settings of a running name server; it keeps them."""
        self._run(self._part().update_config(address, changes))

    def delete_topic(self, topic: str) -> None:
        """Make every name server forget the topic. A broker that still has it brings it back: delete it there first."""
        self._run(self._part().delete_topic(topic))

    def get_kv(self, namespace: str, key: str) -> str | None:
        """A value of the name server's key-value configuration, None when absent."""
        return self._run(self._part().get_kv(namespace, key))

    def list_kv(self, namespace: str) -> dict[str, str]:
        """Every entry of a namespace, none when there is no such namespace."""
        return self._run(self._part().list_kv(namespace))

    def put_kv(self, namespace: str, key: str, value: str) -> None:
        """Set an entry at every name server: they don't tell each other. PartlyDone when some did not answer."""
        self._run(self._part().put_kv(namespace, key, value))

    def delete_kv(self, namespace: str, key: str) -> None:
        """Remove an entry from every name server. PartlyDone when some did not answer."""
        self._run(self._part().delete_kv(namespace, key))

    def wipe_write_perm(self, broker_name: str) -> dict[str, int]:
        """Have no producer choose this broker any more; the number of topics changed, by name server. Lasts until the
        broker registers changed topics."""
        return self._run(self._part().wipe_write_perm(broker_name))

    def add_write_perm(self, broker_name: str) -> dict[str, int]:
        """Undo wipe_write_perm: read and write for every topic of the broker."""
        return self._run(self._part().add_write_perm(broker_name))
