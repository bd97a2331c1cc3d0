"""Admin calls about the name servers: settings, their key-value store, routes, write permission of brokers.

Name servers don't tell each other what changes, so a change goes to all of them.
"""

from __future__ import annotations

from gantrymq.client.admin.calls import AdminCalls, ask_each, read_properties, tell_each, write_properties
from gantrymq.client.connection.answer_fields import int_field
from gantrymq.errors import PartlyDone
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode


class NameServerAdmin:
    """`admin.name_servers`."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    @property
    def addresses(self) -> list[str]:
        """The addresses the AdminClient was given."""
        return list(self._calls.name_servers.addresses)

    async def config(self, address: str) -> dict[str, str]:
        """The settings a name server runs with, under RocketMQ's names."""
        return read_properties((await self._calls.call(address, RequestCode.GET_NAMESRV_CONFIG)).body)

    async def update_config(self, address: str, changes: dict[str, str]) -> None:
        """Change settings of a running name server; it keeps them."""
        await self._calls.call(address, RequestCode.UPDATE_NAMESRV_CONFIG, None, write_properties(changes))

    async def delete_topic(self, topic: str) -> None:
        """Make every name server forget the topic. A broker that still has it brings it back: delete it there first."""
        for address in self.addresses:
            await self._calls.call(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic})

    # -- key-value store ----------------------------------------------------------------------------------------------

    async def get_kv(self, namespace: str, key: str) -> str | None:
        """A value of the name server's key-value configuration, None when absent."""
        answer = await self._calls.name_servers.invoke(RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key})
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return self._calls.name_servers.accepted(answer, RequestCode.GET_KV_CONFIG).ext_fields.get("value")

    async def list_kv(self, namespace: str) -> dict[str, str]:
        """Every entry of a namespace, none when there is no such namespace."""
        answer = await self._calls.name_servers.invoke(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": namespace})
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return {}
        accepted = self._calls.name_servers.accepted(answer, RequestCode.GET_KVLIST_BY_NAMESPACE)
        return KVTable.from_json(accepted.body).table

    async def put_kv(self, namespace: str, key: str, value: str) -> None:
        """Set an entry at every name server: they don't tell each other. PartlyDone when some did not answer."""
        await self._at_all(RequestCode.PUT_KV_CONFIG, {"namespace": namespace, "key": key, "value": value})

    async def delete_kv(self, namespace: str, key: str) -> None:
        """Remove an entry from every name server. PartlyDone when some did not answer."""
        await self._at_all(RequestCode.DELETE_KV_CONFIG, {"namespace": namespace, "key": key})

    async def _at_all(self, code: RequestCode, ext_fields: dict[str, str]) -> None:
        await tell_each(self.addresses, lambda address: self._calls.call(address, code, ext_fields))

    # -- write permission of a broker's topics, to drain it ------------------------------------------------------------

    async def wipe_write_perm(self, broker_name: str) -> dict[str, int]:
        """Have no producer choose this broker any more; the number of topics changed, by name server. Lasts until the
        broker registers changed topics."""
        return await self._write_perm(RequestCode.WIPE_WRITE_PERM_OF_BROKER, broker_name, "wipeTopicCount")

    async def add_write_perm(self, broker_name: str) -> dict[str, int]:
        """Undo wipe_write_perm: read and write for every topic of the broker."""
        return await self._write_perm(RequestCode.ADD_WRITE_PERM_OF_BROKER, broker_name, "addTopicCount")

    async def _write_perm(self, code: RequestCode, broker_name: str, count_field: str) -> dict[str, int]:
        async def change(address: str) -> int:
            return int_field(await self._calls.call(address, code, {"brokerName": broker_name}), count_field, address)

        counts, failures = await ask_each(self.addresses, change)
        if failures:
            raise PartlyDone(list(counts), failures)
        return counts
