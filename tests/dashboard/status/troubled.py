"""A cluster with all that checks look for wrong, more or less of it: the same problems with other figures."""

from __future__ import annotations

from dataclasses import replace

from dashboard.status.board import BrokerFacts, BrokerState, Lane, Snapshot, Stored, WatchedGroup
from dashboard.status.failover import Failover
from dashboard.status.processes import ProcessFacts
from dashboard.status.services import Copying, LaneCounts, Services
from gantrymq.client.admin.failover import FailoverPause, FailoverStatus
from gantrymq.remoting.admin_bodies import SlaveDifference

NOW = 1_700_000_000.0
LOG = "Total : 252.0 GiB, Free : 60.6 GiB."


def snapshots(more: int) -> list[Snapshot]:
    """more: 1, or what the figures are multiplied by."""
    return [
        replace(_of(), namesrv_why="refused"),
        _of(),
        _of(*_silent(more)),
        _of(_in_trouble(more)),
        _of(BrokerState("slave:1", "h:2", _facts("slave:1"), broker_id=1)),
        _of(*_disks(more)),
        replace(_fine(), failovers=_failovers(more), processes=_processes(more)),
        replace(_fine(), groups=_groups(more), stored=Stored(9, 1, NOW, (), (("g", more), ("h", 2 * more)))),
    ]


def _of(*brokers: BrokerState) -> Snapshot:
    return Snapshot(NOW, "n:1", None, brokers, (), None)


def _fine() -> Snapshot:
    return _of(BrokerState("fine", "h:3", _facts("fine")))


def _facts(name: str, **changes: object) -> BrokerFacts:
    return replace(BrokerFacts(name, "h:1", NOW, in_rate=1.0, disk_ratio=0.5), **changes)  # type: ignore[arg-type]


def _silent(more: int) -> list[BrokerState]:
    since = NOW - 60 * more
    return [
        BrokerState("silent", "i:1", None, "no answer", since),
        BrokerState("silent:1", "j:1", None, "no answer", since, broker_id=1),
    ]


def _in_trouble(more: int) -> BrokerState:
    services = Services(
        name_servers_known=0, name_servers_all=more, out_of_files_s=more, connections_refused_for_files=more,
        open_files_max=300, settings_refused=more, settings_refused_from="k:1", settings_refused_s=more,
        messages_damaged=more, message_damaged_last="T-0", timers_pending=more, timer_behind_ms=6000 * more,
        tables_not_saved=("topics",), disagreements=more, disagreeing_groups=("g",), suspensions=more,
        suspended_groups=("g",), topics_not_shared=more, role="ASYNC_MASTER",
        slaves=tuple(SlaveDifference(f"k:{n}", 9 << 30, 60.0 * more, False, 1) for n in range(more)),
        slaves_gone=(("l", 60 * more),), copying=Copying("diverged", "", "m:1", "c", more),
    )  # fmt: skip
    facts = _facts(
        "broker-a", services=services, store_trouble="the disk is slow",
        lanes=(Lane("send", 0, 10000, 300.0 * more), Lane("pull", 9000 + more, 10000, 0.0)),
        refusing=(LaneCounts("send", more, more, more),), refused_at=NOW, told={"epochRival": "7 2 k:1"},
    )  # fmt: skip
    return BrokerState("broker-a", "h:1", facts)


def _disks(more: int) -> list[BrokerState]:
    others: dict[str, object] = {"disk_filled_by_others": True}
    by_name: dict[str, dict[str, object]] = {
        "filling": {"disk_ratio": 0.76 + more / 1000},
        "nearly": {"disk_ratio": 0.86 + more / 1000},
        "full": {"disk_ratio": 0.91 + more / 1000},
        "nearly-others": {"disk_ratio": 0.86 + more / 1000, **others},
        "full-others": {"disk_ratio": 0.91 + more / 1000, **others},
        "soon": {"disk_growth": 1e6 * more, "disk_full_in_s": 3 * 3600.0 + 60 * more},
        "at-once": {"disk_growth": 1e6 * more, "disk_full_in_s": 600.0 + 60 * more},
    }
    return [BrokerState(name, f"{name}:1", _facts(name, disk_text=LOG, **changes)) for name, changes in by_name.items()]


def _failovers(more: int) -> dict[str, Failover]:
    told = FailoverStatus("fine", is_automatic=True, why_none="its disk is broken")
    paused = replace(told, pause=FailoverPause("ops", "disks", int((NOW - 4000 * more) * 1000)))
    return {
        "away": Failover("away", told, why="refused", answered_at=NOW - 10 * more),
        "unfilled": Failover("unfilled", told, answered_at=NOW, unfilled_since=NOW - 10 * more),
        "paused": Failover("paused", paused, answered_at=NOW),
        "shared": Failover("shared", replace(told, shared_stores=("10.0.0.2:10911",)), answered_at=NOW),
    }


def _processes(more: int) -> tuple[ProcessFacts, ...]:
    states = ("crash loop", "waiting", "starting", "restarting", "stopping", "failed", "held", "odd")
    made = [ProcessFacts(state, "broker", 70 + more, state, more, NOW, "", 0.0, 1, NOW) for state in states]
    web = ProcessFacts("web", "web", 7, "running", more, NOW, "", 0.0, 1, NOW, note="the one before was killed")
    return (*made, web, replace(made[0], name="stopped", state="running", is_suspended=True))


def _groups(more: int) -> tuple[WatchedGroup, ...]:
    alone = (WatchedGroup(f"a{n}", 90 - n, 0, 0, NOW, alone_since=NOW - 90) for n in range(6 + more))
    behind = (WatchedGroup(f"b{n}", 90 * more, 600_000 * more, 2, NOW) for n in range(6 + more))
    return (*alone, *behind)
