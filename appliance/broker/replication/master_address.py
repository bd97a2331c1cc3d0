"""Where a slave's master is: name servers tell it in their answers to registrations, haMasterAddress may fix it, and
with automatic failover etcd has it on record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from appliance.settings.replication import HA_ADDRESS_CHARS_MIN


class MasterAddress:
    """broker: "host:port" for requests; ha: that of the log. "" while not known."""

    def __init__(self, own_address: str, fixed_ha: str = "") -> None:
        self._own_address = own_address
        self._fixed_ha = fixed_ha if len(fixed_ha) >= HA_ADDRESS_CHARS_MIN else ""
        self.broker = ""
        self.ha = self._fixed_ha
        self._is_on_record = False
        self.changed = asyncio.Event()  # another address than before; who acts on it clears it

    def registered(self, told: Mapping[str, str]) -> None:
        """Take the fields of a registration's answer. One without a master leaves the last one known standing."""
        if self._is_on_record:
            return
        self._take(told.get("masterAddr", ""), self._fixed_ha or told.get("haServerAddr", ""))

    def on_record(self, broker: str, ha: str) -> None:
        """etcd has this one: from now on nothing else counts, neither name servers nor haMasterAddress."""
        self._is_on_record = True
        self._take(broker, ha)

    def _take(self, broker: str, ha: str) -> None:
        if not broker or broker == self._own_address:
            return
        if (broker, ha) != (self.broker, self.ha):
            self.broker, self.ha = broker, ha
            self.changed.set()
