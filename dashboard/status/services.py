"""What a broker says of its services in request 28: keys that only GantryMQ's brokers have. Of others all is None.

Pure: a table of texts in, values out. Counts run since the broker's start unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

ATTACK_REMEMBERED_S = 3600.0  # an attempt at a public attack is shown for an hour
LANE_COUNT_ENDINGS = ("Rejected", "Expired", "OnewayRefused")  # of LaneCounts, what the broker's keys end with
REFUSALS_REMEMBERED_S = 60.0  # a lane that refused a request this long ago still counts as refusing

T = TypeVar("T")


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _text(text: str | None) -> str:
    return text or ""


def _said(text: str | None) -> str:
    return "" if text is None or text == "none" else text


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split() if word != "none")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(",") if name)


def _by_name(text: str | None) -> tuple[tuple[str, int], ...]:
    """Of "name:count name:count"."""
    pairs = [word.rpartition(":") for word in _words(text)]
    return tuple((name, int(count)) for name, _, count in pairs if name and count.isdecimal())


def _gone(text: str | None) -> tuple[tuple[str, int], ...]:
    pairs = (each.rpartition(" ") for each in (text or "").split(",") if " " in each)
    return tuple((host, _number(seconds) or 0) for host, _, seconds in pairs)


def _told(key: str, read: Callable[[str | None], T]) -> T:
    """A field that is read of this key as it stands there."""
    told: T = field(default=read(None), metadata={"key": key, "read": read})
    return told


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """What became of a lane's requests.

    rejected: a full lane refused them; expired: they waited too long in it. oneway_refused: of the rejected, those
    whose sender was not told.
    """

    name: str
    rejected: int
    expired: int
    oneway_refused: int = 0


@dataclass(frozen=True, slots=True)
class Copying:
    """What a slave says of its copying. why: nothing is copied; connection: as its master names it."""

    state: str
    why: str
    master: str
    connection: str
    received_bytes: int | None
    has_heard: bool = True  # of its master, since its start

    @property
    def is_fine(self) -> bool:
        return self.state in ("copying", "comparing logs")


@dataclass(frozen=True, slots=True)
class Services:
    """The metrics of one broker's services; None or "" is what it does not say."""

    name_servers_known: int | None = None  # that have it registered
    name_servers_all: int | None = None
    connections: int | None = _told("connections", _number)
    connections_parked: int | None = _told("connectionsParked", _number)
    connections_refused_for_files: int | None = _told("connectionsRefusedForFiles", _number)  # since the start
    out_of_files_s: int | None = _told("outOfFilesSecondsAgo", _number)  # since one was last refused; None: never
    open_files_max: int | None = _told("openFilesMax", _number)
    settings_refused: int | None = _told("settingsRefused", _number)  # requests for settings that no request may change
    settings_refused_from: str = _told("settingsRefusedFrom", _text)  # the last one's sender
    settings_refused_s: int | None = _told("settingsRefusedSecondsAgo", _number)  # seconds since; None: never
    messages_damaged: int | None = _told("messagesDamaged", _number)  # found by reads since the start
    message_damaged_last: str = _told("messagesDamagedLast", _said)  # where the last of them is
    held_pulls: int | None = _told("heldPullRequests", _number)
    pop_waiting: int | None = _told("popWaiting", _number)
    pop_redelivered_total: int | None = _told("popRedelivered", _number)  # since the start, as the next two
    pop_dead_letters: int | None = _told("popDeadLetters", _number)
    pop_redelivered: tuple[tuple[str, int], ...] = _told("popRedeliveredByGroup", _by_name)  # most first
    transactions_pending: int | None = _told("transactionPending", _number)
    transactions_checked_ms: int | None = _told("transactionLastCheckTimestamp", _number)  # of producers; 0: never
    timers_pending: int | None = _told("timerPending", _number)
    timer_next_due_ms: int | None = _told("timerNextDueMs", _number)  # 0: none waits
    timer_behind_ms: int | None = _told("timerBehindMs", _number)
    tables_not_saved: tuple[str, ...] = _told("tablesNotSaved", _words)
    disagreements: int | None = _told("subscriptionDisagreements", _number)
    disagreeing_groups: tuple[str, ...] = _told("subscriptionDisagreementGroups", _names)  # the first of them
    suspensions: int | None = _told("suspendedGroups", _number)
    suspended_groups: tuple[str, ...] = _told("suspendedGroupNames", _names)
    consumer_behind_bytes: int | None = _told("consumerBehindBytesMax", _number)
    retention_expired: int | None = _told("topicRetentionExpired", _number)
    topics_not_shared: int | None = _told("topicsNotShared", _number)
    accounts: str = ""
    tls: str = _told("tlsMode", _text)
    fast_path: str = _told("fastPath", _text)  # "on", or "off" with the reason in brackets
    settings_ignored: str = _told("settingsIgnored", _text)
    role: str = _told("brokerRole", _text)  # ASYNC_MASTER, SYNC_MASTER or SLAVE
    slaves: tuple[SlaveDifference, ...] = ()  # those that are connected
    slaves_gone: tuple[tuple[str, int], ...] = _told("slavesGone", _gone)  # hosts, and seconds since their slave went
    copying: Copying | None = None  # a slave's
    lanes: tuple[LaneCounts, ...] = ()

    @property
    def rejected(self) -> int | None:
        return sum(lane.rejected for lane in self.lanes) if self.lanes else None

    @property
    def expired(self) -> int | None:
        return sum(lane.expired for lane in self.lanes) if self.lanes else None


def read_services(info: Mapping[str, str], lane_prefixes: Sequence[tuple[str, str]]) -> Services:
    """A broker's services from its table. lane_prefixes: lane to what its keys begin with."""
    known, _, all_ = info.get("nameServersRegistered", "").partition("/")
    plain = {one.name: one.metadata["read"](info.get(one.metadata["key"])) for one in fields(Services) if one.metadata}
    return Services(
        **plain,
        name_servers_known=_number(known),
        name_servers_all=_number(all_),
        accounts=_accounts(info),
        slaves=tuple(SlaveDifferences.of_runtime_info(info)),
        copying=_copying(info),
        lanes=tuple(
            LaneCounts(name, *(_number(info.get(f"{prefix}{what}")) or 0 for what in LANE_COUNT_ENDINGS))
            for name, prefix in lane_prefixes
            if f"{prefix}Rejected" in info
        ),
    )


def refusing_lanes(before: Services | None, now: Services) -> tuple[LaneCounts, ...]:
    """The lanes that refused something between two readings, with how much of it."""
    if before is None:
        return ()
    old = {lane.name: lane for lane in before.lanes}
    grown = []
    for lane in now.lanes:
        was = old.get(lane.name)
        if was is None:
            continue
        rejected, expired = lane.rejected - was.rejected, lane.expired - was.expired
        if rejected > 0 or expired > 0:
            oneway_refused = lane.oneway_refused - was.oneway_refused
            grown.append(LaneCounts(lane.name, max(rejected, 0), max(expired, 0), max(oneway_refused, 0)))
    return tuple(grown)


def _accounts(info: Mapping[str, str]) -> str:
    enabled = info.get("aclEnable")
    if enabled is None:
        return ""
    return f"{info.get('aclAccounts', '?')} accounts" if enabled == "true" else "off"


def _copying(info: Mapping[str, str]) -> Copying | None:
    if "slaveState" not in info:
        return None
    why, master, connection = (_said(info.get(key)) for key in ("slaveStateWhy", "slaveMaster", "slaveConnection"))
    has_heard = info.get("slaveHeardSecondsAgo") != "never"
    return Copying(info["slaveState"], why, master, connection, _number(info.get("slaveReceivedBytes")), has_heard)
