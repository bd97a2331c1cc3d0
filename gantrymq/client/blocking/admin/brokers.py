"""brokers, for threads.

Written from gantrymq.client.admin.brokers, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from gantrymq.client.admin.brokers import BrokerAdmin, SettingOrigins
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.remoting.admin_bodies import BrokerStatsData


class SyncBrokerAdmin(BlockingPart[BrokerAdmin]):
    """`admin.brokers`."""

    def runtime_info(self, address: str) -> dict[str, str]:
        """Runtime metrics, all text, under RocketMQ's names (msgPutTotalTodayNow, putTps, commitLogDiskRatio ...)."""
        return self._run(self._part().runtime_info(address))

    def config(self, address: str) -> dict[str, str]:
        """The settings the broker runs with, under RocketMQ's names."""
        return self._run(self._part().config(address))

    def config_with_origins(self, address: str) -> tuple[dict[str, str], SettingOrigins | None]:
        """The same, and where each comes from; None: an Apache broker does not say."""
        return self._run(self._part().config_with_origins(address))

    def update_config(self, address: str, changes: dict[str, str]) -> str | None:
        """Change settings of a running broker; it keeps them. Returns its remark, None when it has none."""
        return self._run(self._part().update_config(address, changes))

    def stats(self, address: str, name: str, key: str) -> BrokerStatsData:
        """A counter such as TOPIC_PUT_NUMS / topic over minute, hour and day; ResponseError when never counted."""
        return self._run(self._part().stats(address, name, key))

    def clean_expired_queues(self, address: str) -> None:
        """Drop consume queue files that point before the commit log, now instead of at their time."""
        self._run(self._part().clean_expired_queues(address))

    def clean_unused_topics(self, address: str) -> None:
        """Delete the queues of topics that no longer exist."""
        self._run(self._part().clean_unused_topics(address))

    def delete_expired_commit_log(self, address: str) -> None:
        """Delete commit log files past their time, now instead of at the hour set for it."""
        self._run(self._part().delete_expired_commit_log(address))
