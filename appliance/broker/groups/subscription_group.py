"""The consumer groups of this broker and their settings; kept in subscriptionGroup.json.

Groups come into being by being asked for (if the broker allows that), as in RocketMQ: a consumer needs no
registration.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from pathlib import Path

from appliance.process.config_table import ConfigTable, entry
from appliance.process.json_file import document_body
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.log_limit import LogLimit
from gantrymq.message import topics as names
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, SubscriptionGroupWrapper

logger = logging.getLogger(__name__)

GROUPS_MAX = 250_000  # created by themselves; an operator may go on

BUILT_IN_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


class SubscriptionGroupManager(ConfigTable[SubscriptionGroupConfig]):
    """The group table. load() before anything else; run() writes the file."""

    def __init__(self, path: Path, config: BrokerConfig, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, "subscriptionGroupTable", clock)
        self._config = config
        self._log_limit = LogLimit()
        self._suspended: dict[str, SubscriptionGroupConfig] = {}  # as they were before, by name
        for group in BUILT_IN_GROUPS:
            self._keep(group, SubscriptionGroupConfig(group))

    def load(self) -> None:
        """Read subscriptionGroup.json: its groups are added to the built-in ones. Raises StateFileError."""
        stored = self._file.load_as(SubscriptionGroupWrapper.from_dict, "a table of groups")
        if stored is None:
            self._touch()
            return
        self.data_version = stored.data_version
        for group, config in stored.subscription_group_table.items():
            self._keep(group, self._named(group, config))

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """Return the group's settings; an unknown group is created if that is allowed, else None."""
        config = self.configs.get(group)
        if config is not None:
            return config
        if not self._config.auto_create_subscription_group and not group.startswith(names.SYSTEM_GROUP_PREFIX):
            return None
        try:
            names.check_group(group)
            if len(self.configs) >= GROUPS_MAX:
                raise MessageRejected(f"{GROUPS_MAX} groups exist already")
        except MessageRejected as exc:
            if self._log_limit.allows("group_not_created", ""):
                logger.warning("group not created", extra={"event": "group_not_created", "reason": str(exc)[:300]})
            return None
        config = SubscriptionGroupConfig(group)
        self._keep(group, config)
        self._touch()
        left_out = self._log_limit.left_out("group_created", "")
        if left_out is not None:
            facts = {"event": "group_created", "group": group} | ({"left_out": left_out} if left_out else {})
            logger.info("group created", extra=facts)
        return config

    def update(self, config: SubscriptionGroupConfig) -> None:
        """Create or replace a group's settings. Raises MessageRejected for a name that no group can have."""
        if config.group_name not in self.configs:
            names.check_group(config.group_name)
        self._keep(config.group_name, dataclasses.replace(config))  # a copy: the caller may go on using its own
        self._touch()
        logger.info("group updated", extra={"event": "group_updated", "group": config.group_name})

    def delete(self, group: str) -> bool:
        """Forget the group's settings; False when there were none. Offsets are the caller's to clean."""
        if group not in self.configs:
            return False
        self._drop(group)
        self._touch()
        logger.info("group deleted", extra={"event": "group_deleted", "group": group})
        return True

    async def replace_all(self, theirs: SubscriptionGroupWrapper) -> None:
        """Take over a master's table as it is, its version included; for its slave."""
        await self._take_over(theirs.subscription_group_table, theirs.data_version)

    async def body(self) -> bytes:
        """The whole table as the body of 201: with the groups that are suspended as they are now."""
        if not self._suspended:
            return await super().body()
        lines = self._lines | {group: entry(group, self.configs[group]) for group in self._suspended}
        return await document_body({self._member: lines.values()}, data_version=self.data_version.to_json())

    # -- suspending, in memory only -----------------------------------------------------------------------------------

    @property
    def suspended(self) -> list[str]:
        """The groups that suspend() disabled and that no request has set since."""
        return sorted(self._suspended)

    def suspend(self, group: str) -> bool:
        """Stop the group from consuming; its file entry stays. False when it may not already, or is unknown."""
        config = self.configs.get(group)
        if config is None or not config.consume_enable:
            return False
        self._suspended[group] = config
        self.configs[group] = dataclasses.replace(config, consume_enable=False)
        self._bump()
        return True

    def resume(self, group: str) -> None:
        """Take a suspend() back."""
        config = self._suspended.pop(group, None)
        if config is not None:
            self.configs[group] = config
            self._bump()

    # -- entries ------------------------------------------------------------------------------------------------------

    def _named(self, name: str, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        return dataclasses.replace(config, group_name=name)

    def _keep(self, name: str, config: SubscriptionGroupConfig) -> None:
        super()._keep(name, config)
        self._suspended.pop(name, None)

    def _drop(self, name: str) -> None:
        super()._drop(name)
        self._suspended.pop(name, None)
