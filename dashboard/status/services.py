"""What a broker says of its services in request 28: keys that only GantryMQ's brokers have. Of others all is None.

Pure: a table of texts in, values out. Counts run since the broker's start unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

ATTACK_REMEMBERED_S = 3600.0  # an attempt at a public attack is shown for an hour
LANE_COUNT_ENDINGS = ("Rejected", "Expired", "OnewayRefused")  # of LaneCounts, what the broker's keys end with
REFUSALS_REMEMBERED_S = 60.0  # a lane that refused a request this long ago still counts as refusing


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


@dataclass(frozen=True, slots=True)
class Services:
    """The metrics of one broker's services; None or "" is what it does not say."""

    name_servers_known: int | None = None  # that have it registered
    name_servers_all: int | None = None
    connections: int | None = None
    connections_parked: int | None = None
    connections_refused_for_files: int | None = None  # since the start
    out_of_files_s: int | None = None  # seconds since one was last refused for want of files; None: never
    open_files_max: int | None = None
    settings_refused: int | None = None  # requests for settings that no request may change
    settings_refused_from: str = ""  # the last one's sender
    settings_refused_s: int | None = None  # seconds since; None: never
    messages_damaged: int | None = None  # found by reads since the start
    message_damaged_last: str = ""  # where the last of them is
    held_pulls: int | None = None
    pop_waiting: int | None = None
    pop_redelivered_total: int | None = None  # since the start, as the next two
    pop_dead_letters: int | None = None
    pop_redelivered: tuple[tuple[str, int], ...] = ()  # group and number, most first
    transactions_pending: int | None = None
    transactions_checked_ms: int | None = None  # when producers were last asked; 0 never
    timers_pending: int | None = None
    timer_next_due_ms: int | None = None  # 0: none waits
    timer_behind_ms: int | None = None
    tables_not_saved: tuple[str, ...] = ()
    disagreements: int | None = None
    disagreeing_groups: tuple[str, ...] = ()  # the first of them
    suspensions: int | None = None
    suspended_groups: tuple[str, ...] = ()
    consumer_behind_bytes: int | None = None
    retention_expired: int | None = None
    topics_not_shared: int | None = None
    accounts: str = ""
    tls: str = ""
    fast_path: str = ""  # "on", or "off" with the reason in brackets
    settings_ignored: str = ""
    role: str = ""  # ASYNC_MASTER, SYNC_MASTER or SLAVE
    slaves: tuple[SlaveDifference, ...] = ()  # those that are connected
    slaves_gone: tuple[tuple[str, int], ...] = ()  # hosts, and seconds since their slave went
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
    return Services(
        name_servers_known=_number(known),
        name_servers_all=_number(all_),
        connections=_number(info.get("connections")),
        connections_parked=_number(info.get("connectionsParked")),
        connections_refused_for_files=_number(info.get("connectionsRefusedForFiles")),
        out_of_files_s=_number(info.get("outOfFilesSecondsAgo")),
        open_files_max=_number(info.get("openFilesMax")),
        settings_refused=_number(info.get("settingsRefused")),
        settings_refused_from=info.get("settingsRefusedFrom", ""),
        settings_refused_s=_number(info.get("settingsRefusedSecondsAgo")),
        messages_damaged=_number(info.get("messagesDamaged")),
        message_damaged_last=_said(info, "messagesDamagedLast"),
        held_pulls=_number(info.get("heldPullRequests")),
        pop_waiting=_number(info.get("popWaiting")),
        pop_redelivered_total=_number(info.get("popRedelivered")),
        pop_dead_letters=_number(info.get("popDeadLetters")),
        pop_redelivered=_by_name(info.get("popRedeliveredByGroup", "none")),
        transactions_pending=_number(info.get("transactionPending")),
        transactions_checked_ms=_number(info.get("transactionLastCheckTimestamp")),
        timers_pending=_number(info.get("timerPending")),
        timer_next_due_ms=_number(info.get("timerNextDueMs")),
        timer_behind_ms=_number(info.get("timerBehindMs")),
        tables_not_saved=tuple(name for name in info.get("tablesNotSaved", "").split() if name != "none"),
        disagreements=_number(info.get("subscriptionDisagreements")),
        disagreeing_groups=_names(info.get("subscriptionDisagreementGroups")),
        suspensions=_number(info.get("suspendedGroups")),
        suspended_groups=_names(info.get("suspendedGroupNames")),
        consumer_behind_bytes=_number(info.get("consumerBehindBytesMax")),
        retention_expired=_number(info.get("topicRetentionExpired")),
        topics_not_shared=_number(info.get("topicsNotShared")),
        accounts=_accounts(info),
        tls=info.get("tlsMode", ""),
        fast_path=info.get("fastPath", ""),
        settings_ignored=info.get("settingsIgnored", ""),
        role=info.get("brokerRole", ""),
        slaves=tuple(SlaveDifferences.of_runtime_info(info)),
        slaves_gone=_gone(info.get("slavesGone", "none")),
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
    why, master, connection = (_said(info, key) for key in ("slaveStateWhy", "slaveMaster", "slaveConnection"))
    has_heard = info.get("slaveHeardSecondsAgo") != "never"
    return Copying(info["slaveState"], why, master, connection, _number(info.get("slaveReceivedBytes")), has_heard)


def _said(info: Mapping[str, str], key: str) -> str:
    text = info.get(key, "none")
    return "" if text == "none" else text


def _gone(text: str) -> tuple[tuple[str, int], ...]:
    pairs = (each.rpartition(" ") for each in text.split(",") if " " in each)
    return tuple((host, _number(seconds) or 0) for host, _, seconds in pairs)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(",") if name)


def _by_name(text: str) -> tuple[tuple[str, int], ...]:
    """Of "name:count name:count"."""
    pairs = [word.rpartition(":") for word in text.split() if word != "none"]
    return tuple((name, int(count)) for name, _, count in pairs if name and count.isdecimal())


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
