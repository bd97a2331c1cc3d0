"""The sections of a broker's settings, by what their keys are about. Pure: a key is in the first that it fits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext_noop

from appliance.settings.ignored import FIXED, IGNORED
from dashboard.cluster.settings_table import FOLLOWS, BrokerSetting
from dashboard.language.sentences import gettext

CHANGED, NO_EFFECT, OTHER = "changed", "no-effect", "broker"
# key: title, what the keys of the section have in their names
SECTIONS: dict[str, tuple[str, str]] = {
    "retention": (
        gettext_noop("Retention and disk"),
        r"^(fileReserved|deleteWhen|clean|maxStoreBytes|deleteCommitLog|diskMaxUsed)|\.diskSpace",
    ),
    "flush": (
        gettext_noop("Flush"),
        r"^(flushDisk|flushIntervalC|commitInterval|syncFlush|transientStore|warm|osPageCache)",
    ),
    "storage": (
        gettext_noop("Storage"),
        r"^(storePath|mappedFile|maxHashSlot|maxIndexNum|messageIndex|readOnlyCommitLog|checkCRC|enableConsumeQueueExt"
        r"|accessMessageInMemory)",
    ),
    "accounts": (gettext_noop("Accounts and TLS"), r"^(acl|tls|credentials|haAccounts|haTls|useTLS)|\.acl\."),
    "replication": (
        gettext_noop("Replication and failover"),
        r"^(ha[A-Z]|slave|brokerRole|brokerElection|allAck|minInSync|automaticFailover|failover|etcd|readConfirmed"
        r"|offsetCheckInSlave)",
    ),
    "network": (
        gettext_noop("Network and name servers"),
        r"^(listenPort|bindAddress|brokerIP|namesrv|server|connect|register|forceRegister|compressedRegister|fetchNamesrv"
        r"|writeBuffer|fastPath)|\.namesrv\.|\.remoting\.",
    ),
    "limits": (
        gettext_noop("Limits"),
        r"^(max|waitTime|brokerFastFailure|createdAMinute|heartbeatSubscriptions|lockQueuesMax)|KeysMax$|PoolQueueCapacity$",
    ),
    "topics": (
        gettext_noop("Topics, delays and transactions"),
        r"^(autoCreateTopic|defaultTopic|messageDelay|timer|transaction|rejectTransaction|trace|msgTrace|shareCreated"
        r"|storeReply)",
    ),
    "consumers": (
        gettext_noop("Consumers"),
        r"^(autoCreateSubscription|consumer|disableConsume|enableCalc|enableProperty|filterSupport|flushConsumerOffset"
        r"|flushDelayOffset|longPolling|queueLock)|\.rebalance\.",
    ),
    OTHER: (gettext_noop("Broker"), ""),
}  # fmt: skip
_NAMES = {key: re.compile(names) for key, (_, names) in SECTIONS.items()}


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """title: in the language of the page."""

    key: str
    title: str
    rows: tuple[BrokerSetting, ...]

    @property
    def changeable(self) -> int:
        return sum(row.refusal is None for row in self.rows)


def section_of(key: str) -> str:
    """The section of a setting, a key of SECTIONS or NO_EFFECT."""
    if key in IGNORED or key in FIXED:
        return NO_EFFECT
    return next(section for section, names in _NAMES.items() if names.search(key))


def is_changed(row: BrokerSetting) -> bool:
    """Whether it was given another value: neither what follows from others nor what can have one value only."""
    return not row.is_default and row.source != FOLLOWS and section_of(row.key) != NO_EFFECT


def in_sections(rows: Iterable[BrokerSetting]) -> list[SettingsSection]:
    """What was changed first, then section by section, each with what can be changed first."""
    shown = list(rows)
    titles = {key: title for key, (title, _) in SECTIONS.items()} | {NO_EFFECT: gettext_noop("Without effect here")}
    found = []
    for key, title in {CHANGED: gettext_noop("Changed"), **titles}.items():
        of_section = [row for row in shown if (CHANGED if is_changed(row) else section_of(row.key)) == key]
        if of_section:
            of_section.sort(key=lambda row: row.refusal is not None)  # a stable sort: by key in each half
            found.append(SettingsSection(key, gettext(title), tuple(of_section)))
    return found
