"""The consumer groups of this broker and their settings; kept in subscriptionGroup.json.

A config in the table is replaced, never changed in place. Groups come into being by being asked for (if the broker
allows that), as in RocketMQ: a consumer needs no registration.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from pathlib import Path

from appliance.process.cooperative import in_slices
from appliance.process.json_file import (
    Document,
    JsonFile,
    SavedTable,
    StateWriter,
    document_body,
    member_text,
)
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.log_limit import LogLimit
from gantrymq.message import topics as names
from gantrymq.remoting.bodies import DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper

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
WRITE_DELAY_S = 0.02
GROUPS_A_SLICE = 64  # of a master's table, before others have a turn


class SubscriptionGroupManager(SavedTable):
    """The group table. load() before anything else; run() writes the file."""

    def __init__(self, path: Path, config: BrokerConfig, *, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._file = JsonFile(path)
        self._writer = StateWriter(self._file, self._render, delay_s=WRITE_DELAY_S)
        self._log_limit = LogLimit()
        self._lines: dict[str, str] = {}  # group to its entry in the file
        self._suspended: dict[str, SubscriptionGroupConfig] = {}  # as they were before, by name
        self.configs: dict[str, SubscriptionGroupConfig] = {}
        self.data_version = DataVersion()
        for group in BUILT_IN_GROUPS:
            self._keep(SubscriptionGroupConfig(group))

    def load(self) -> None:
        """Read subscriptionGroup.json: its groups are added to the built-in ones. Raises StateFileError."""
        stored = self._file.load_as(SubscriptionGroupWrapper.from_dict, "a table of groups")
        if stored is None:
            self._touch()
            return
        self.data_version = stored.data_version
        for group, config in stored.subscription_group_table.items():
            self._keep(dataclasses.replace(config, group_name=group))

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
        self._keep(config)
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
        self._keep(dataclasses.replace(config))  # a copy: the caller may go on using its own
        self._touch()
        logger.info("group updated", extra={"event": "group_updated", "group": config.group_name})

    def delete(self, group: str) -> bool:
        """Forget the group's settings; False when there were none. Offsets are the caller's to clean."""
        if self.configs.pop(group, None) is None:
            return False
        del self._lines[group]
        self._suspended.pop(group, None)
        self._touch()
        logger.info("group deleted", extra={"event": "group_deleted", "group": group})
        return True

    async def replace_all(self, theirs: SubscriptionGroupWrapper) -> None:
        """Take over a master's table as it is, its version included; for its slave."""
        for group in self.configs.keys() - theirs.subscription_group_table.keys():
            del self.configs[group], self._lines[group]
            self._suspended.pop(group, None)
        async for group, config in in_slices(list(theirs.subscription_group_table.items()), GROUPS_A_SLICE):
            if self.configs.get(group) != config:
                self._keep(dataclasses.replace(config, group_name=group))
        self.data_version = theirs.data_version
        self._writer.changed()

    async def body(self) -> bytes:
        """The whole table as the body of 201: with the groups that are suspended as they are now."""
        lines = self._lines
        if self._suspended:
            lines = lines | {group: _entry(self.configs[group]) for group in self._suspended}
        return await document_body({"subscriptionGroupTable": lines.values()}, data_version=self.data_version.to_json())

    # -- suspending, in memory only -----------------------------------------------------------------------------------

    @property
    def suspended(self) -> list[str]:
        """The groups that suspend() disabled and that no request has set since."""
        return sorted(self._suspended)

    def suspend(self, group: str) -> bool:
        """Let the group consume no more; its file entry stays. False when it may not already, or is unknown."""
        config = self.configs.get(group)
        if config is None or not config.consume_enable:
            return False
        self._suspended[group] = config
        self.configs[group] = dataclasses.replace(config, consume_enable=False)
        self.data_version.bump(int(self._clock() * 1000))
        return True

    def resume(self, group: str) -> None:
        """Take a suspend() back."""
        config = self._suspended.pop(group, None)
        if config is not None:
            self.configs[group] = config
            self.data_version.bump(int(self._clock() * 1000))

    # -- entries ------------------------------------------------------------------------------------------------------

    def _keep(self, config: SubscriptionGroupConfig) -> None:
        self.configs[config.group_name] = config
        self._suspended.pop(config.group_name, None)
        self._lines[config.group_name] = _entry(config)

    def _touch(self) -> None:
        self.data_version.bump(int(self._clock() * 1000))
        self._writer.changed()

    def _render(self) -> Document:
        return Document({"subscriptionGroupTable": self._lines.values()}, data_version=self.data_version.to_json())


def _entry(config: SubscriptionGroupConfig) -> str:
    return member_text(config.group_name, config.to_json().decode())
