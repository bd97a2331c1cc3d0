"""The gateway's brokers: which there are, what one says of itself, its settings."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.cluster.calls import CALL_ERRORS, CALL_TIMEOUT_S, CLUSTER_MAX_AGE_S, ClusterCalls, refusals_of
from dashboard.cluster.errors import BrokerNotFound, BrokerUnreachable, explain
from dashboard.cluster.settings_table import BrokerSetting, SettingChange, broker_settings
from dashboard.cluster.values import BrokerRef, ClusterView
from dashboard.language.sentences import gettext


class BrokerCalls:
    """`gateway.brokers`: what pages, REST and the sampler ask about brokers."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._calls = calls

    async def list(self, *, timeout_s: float = CALL_TIMEOUT_S, max_age_s: float = CLUSTER_MAX_AGE_S) -> ClusterView:
        """The brokers. When the name server is silent: the last known ones, with `why`. Raises ClusterUnreachable."""
        return await self._calls.cluster(timeout_s=timeout_s, max_age_s=max_age_s)

    async def get(self, name: str) -> BrokerRef:
        """Where the broker is. Raises BrokerNotFound."""
        found = (await self._calls.cluster()).named(name)
        if found is None:
            raise BrokerNotFound(gettext("There is no broker %(name)s.") % {"name": name})
        return found

    async def runtime_info(self, broker: BrokerRef, *, timeout_s: float = CALL_TIMEOUT_S) -> dict[str, str]:
        """The broker's own table of facts. Raises BrokerUnreachable."""
        try:
            return await self._calls.call_broker(
                broker, lambda admin: admin.brokers.runtime_info(broker.address), timeout_s
            )
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(explain(exc)) from exc

    async def settings(self, broker: BrokerRef) -> Sequence[BrokerSetting]:
        """Everything it runs with, secrets masked. Raises Refused, BrokerUnreachable."""
        with refusals_of(broker.name):
            values, origins = await self._calls.call_broker(
                broker, lambda admin: admin.brokers.config_with_origins(broker.address)
            )
        return broker_settings(values, origins)

    async def change_settings(self, broker: BrokerRef, changes: Sequence[SettingChange]) -> str | None:
        """Put the changes in force, all or none; returns the broker's remark. Raises Refused, BrokerUnreachable."""
        values = {change.key: change.after for change in changes}
        with refusals_of(broker.name):
            return await self._calls.call(lambda admin: admin.brokers.update_config(broker.address, values))
