"""Admin calls about name servers and brokers as such: settings, figures, the key-value store, write permission,
cleaning."""

from __future__ import annotations

from gantrymq.client.admin.calls import AdminCalls, accepted, ask_each, read_properties
from gantrymq.client.connection.broker_calls import int_field
from gantrymq.errors import PartlyDone
from gantrymq.remoting.bodies import BrokerStatsData, KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode


class ClusterAdmin(AdminCalls):
    """Name servers and brokers."""

    async def kv_config(self, namespace: str, key: str) -> str | None:
        """A value of the name server's key-value configuration, None when absent."""
        answer = await self._name_servers.invoke(RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key})
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return accepted(answer).ext_fields.get("value")

    async def name_server_config(self, address: str) -> dict[str, str]:
        """The settings a name server runs with, under RocketMQ's names."""
        return read_properties((await self.call(address, RequestCode.GET_NAMESRV_CONFIG)).body)

    async def broker_runtime_info(self, address: str) -> dict[str, str]:
        """Runtime figures, all text, under RocketMQ's names (msgPutTotalTodayNow, putTps, commitLogDiskRatio ...)."""
        return KVTable.from_json((await self.call(address, RequestCode.GET_BROKER_RUNTIME_INFO)).body).table

    async def broker_config(self, address: str) -> dict[str, str]:
        """The settings the broker runs with, under RocketMQ's names."""
        return read_properties((await self.call(address, RequestCode.GET_BROKER_CONFIG)).body)

    async def update_broker_config(self, address: str, changes: dict[str, str]) -> str | None:
        """Change settings of a running broker; it keeps them. Returns what it remarks, if it does."""
        body = "".join(f"{name}={value}\n" for name, value in changes.items()).encode()
        return (await self.call(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)).remark or None

    async def broker_stats(self, address: str, name: str, key: str) -> BrokerStatsData:
        """A counter such as TOPIC_PUT_NUMS / topic over minute, hour and day; ResponseError when never counted."""
        ext_fields = {"statsName": name, "statsKey": key}
        return BrokerStatsData.from_json(
            (await self.call(address, RequestCode.VIEW_BROKER_STATS_DATA, ext_fields)).body
        )

    async def update_name_server_config(self, address: str, changes: dict[str, str]) -> None:
        """Change settings of a running name server; it keeps them."""
        await self.call(address, RequestCode.UPDATE_NAMESRV_CONFIG, None, write_properties(changes))

    # -- the name servers' key-value store ----------------------------------------------------------------------------

    async def kv_list(self, namespace: str) -> dict[str, str]:
        """Every entry of a namespace, none when there is no such namespace."""
        answer = await self._name_servers.invoke(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": namespace})
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return {}
        return KVTable.from_json(accepted(answer).body).table

    async def put_kv(self, namespace: str, key: str, value: str) -> None:
        """Set an entry at every name server: they don't tell each other. PartlyDone when some did not answer."""
        await self._at_all(RequestCode.PUT_KV_CONFIG, {"namespace": namespace, "key": key, "value": value})

    async def delete_kv(self, namespace: str, key: str) -> None:
        """Remove an entry from every name server. PartlyDone when some did not answer."""
        await self._at_all(RequestCode.DELETE_KV_CONFIG, {"namespace": namespace, "key": key})

    async def _at_all(self, code: RequestCode, ext_fields: dict[str, str]) -> None:
        done, failures = await ask_each(
            self._name_servers.addresses, lambda address: self.call(address, code, ext_fields)
        )
        if failures:
            raise PartlyDone(list(done), failures)

    # -- draining -----------------------------------------------------------------------------------------------------

    async def wipe_write_perm(self, broker_name: str) -> dict[str, int]:
        """Have no producer choose this broker any more; the number of topics changed, by name server. Lasts until the
        broker registers changed topics."""
        return await self._write_perm(RequestCode.WIPE_WRITE_PERM_OF_BROKER, broker_name, "wipeTopicCount")

    async def add_write_perm(self, broker_name: str) -> dict[str, int]:
        """Undo wipe_write_perm: read and write for every topic of the broker."""
        return await self._write_perm(RequestCode.ADD_WRITE_PERM_OF_BROKER, broker_name, "addTopicCount")

    async def _write_perm(self, code: RequestCode, broker_name: str, count_field: str) -> dict[str, int]:
        async def change(address: str) -> int:
            return int_field(await self.call(address, code, {"brokerName": broker_name}), count_field, address)

        counts, failures = await ask_each(self._name_servers.addresses, change)
        if failures:
            raise PartlyDone(list(counts), failures)
        return counts

    # -- cleaning -----------------------------------------------------------------------------------------------------

    async def clean_expired_queues(self, address: str) -> None:
        """Drop consume queue files that point before the commit log, now instead of at their time."""
        await self.call(address, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)

    async def clean_unused_topics(self, address: str) -> None:
        """Delete the queues of topics that are not configured any more."""
        await self.call(address, RequestCode.CLEAN_UNUSED_TOPIC)

    async def delete_expired_commit_log(self, address: str) -> None:
        """Delete commit log files past their time, now instead of at the hour set for it."""
        await self.call(address, RequestCode.DELETE_EXPIRED_COMMITLOG)


def write_properties(changes: dict[str, str]) -> bytes:
    """Settings as Java properties text."""
    return "".join(f"{name}={value}\n" for name, value in changes.items()).encode()
