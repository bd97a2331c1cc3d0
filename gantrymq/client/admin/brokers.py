"""Admin calls about one broker as such: metrics, settings, cleaning. The first argument is the broker's address."""

from __future__ import annotations

from dataclasses import dataclass

from gantrymq.client.admin.calls import AdminCalls, read_properties, write_properties
from gantrymq.remoting.admin_bodies import BrokerStatsData, KVTable
from gantrymq.remoting.codes import RequestCode


@dataclass(frozen=True)
class SettingOrigins:
    """Where a broker's settings come from. in_file: keys of its file as it started. changed: while it runs, and when
    (ms since the epoch)."""

    in_file: frozenset[str]
    changed: dict[str, int]


class BrokerAdmin:
    """`admin.brokers`."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def runtime_info(self, address: str) -> dict[str, str]:
        """Runtime metrics, all text, under RocketMQ's names (msgPutTotalTodayNow, putTps, commitLogDiskRatio ...)."""
        return KVTable.from_json((await self._calls.call(address, RequestCode.GET_BROKER_RUNTIME_INFO)).body).table

    async def config(self, address: str) -> dict[str, str]:
        """The settings the broker runs with, under RocketMQ's names."""
        return read_properties((await self._calls.call(address, RequestCode.GET_BROKER_CONFIG)).body)

    async def config_with_origins(self, address: str) -> tuple[dict[str, str], SettingOrigins | None]:
        """The same, and where each comes from; None: an Apache broker does not say."""
        answer = await self._calls.call(address, RequestCode.GET_BROKER_CONFIG)
        fields = answer.ext_fields
        origins = None
        if "keysInFile" in fields:
            pairs = (item.rpartition(":") for item in fields.get("keysChanged", "").split(","))
            changed = {key: int(at) for key, _, at in pairs if at.isdecimal()}
            origins = SettingOrigins(frozenset(fields["keysInFile"].split(",")), changed)
        return read_properties(answer.body), origins

    async def update_config(self, address: str, changes: dict[str, str]) -> str | None:
        """Change settings of a running broker; it keeps them. Returns its remark, None when it has none."""
        body = write_properties(changes)
        return (await self._calls.call(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)).remark or None

    async def stats(self, address: str, name: str, key: str) -> BrokerStatsData:
        """A counter such as TOPIC_PUT_NUMS / topic over minute, hour and day; ResponseError when never counted."""
        ext_fields = {"statsName": name, "statsKey": key}
        return BrokerStatsData.from_json(
            (await self._calls.call(address, RequestCode.VIEW_BROKER_STATS_DATA, ext_fields)).body
        )

    async def clean_expired_queues(self, address: str) -> None:
        """Drop consume queue files that point before the commit log, now instead of at their time."""
        await self._calls.call(address, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)

    async def clean_unused_topics(self, address: str) -> None:
        """Delete the queues of topics that no longer exist."""
        await self._calls.call(address, RequestCode.CLEAN_UNUSED_TOPIC)

    async def delete_expired_commit_log(self, address: str) -> None:
        """Delete commit log files past their time, now instead of at the hour set for it."""
        await self._calls.call(address, RequestCode.DELETE_EXPIRED_COMMITLOG)
