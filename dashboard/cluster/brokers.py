"""The gateway's broker settings: read, change."""

from __future__ import annotations

from dashboard.cluster.calls import ClusterCalls, Failure
from dashboard.cluster.errors import BrokerNotFound, BrokerUnreachable, Refused, explain
from dashboard.cluster.settings_table import SettingChange, SettingRow, setting_rows
from dashboard.cluster.values import BrokerRef
from gantrymq.errors import ResponseError


class ConfigCalls(ClusterCalls):
    """What pages and REST ask about a broker's settings."""

    async def broker(self, name: str) -> BrokerRef:
        """Raises BrokerNotFound."""
        found = (await self.cluster()).named(name)
        if found is None:
            raise BrokerNotFound(f"There is no broker {name}.")
        return found

    async def broker_settings(self, broker: BrokerRef) -> list[SettingRow]:
        """Everything it runs with, secrets masked. Raises Refused, BrokerUnreachable."""
        try:
            values = await self.call_broker(broker, lambda admin: admin.brokers.config(broker.address))
        except ResponseError as exc:
            raise Refused(explain(exc)) from exc
        except Failure as exc:
            raise BrokerUnreachable(f"{broker.name}: {explain(exc)}") from exc
        return setting_rows(values)

    async def change_settings(self, broker: BrokerRef, changes: list[SettingChange]) -> str | None:
        """Put the changes in force, all or none; returns what the broker remarks. Raises Refused, BrokerUnreachable."""
        values = {change.key: change.after for change in changes}
        try:
            return await self.call(lambda admin: admin.brokers.update_config(broker.address, values))
        except ResponseError as exc:
            raise Refused(explain(exc)) from exc
        except Failure as exc:
            raise BrokerUnreachable(f"{broker.name}: {explain(exc)}") from exc
