"""/api/v1/brokers: their figures, a broker's settings, and who is its master."""

from __future__ import annotations

import time
from typing import Literal

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from ninja import Field, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.brokers import master_change
from dashboard.brokers.changes import SettingChanged, changes_of, newest_by_key
from dashboard.brokers.draining import drains, start_drain, undo_drain
from dashboard.brokers.failover_schemas import FailoverOut, PauseIn, ResumeIn
from dashboard.brokers.machine import machine_checks
from dashboard.brokers.master_change import change_master, choose_log
from dashboard.brokers.schemas import (
    UNKNOWN,
    BrokerOut,
    DrainIn,
    DrainOut,
    MasterOut,
    SettlementIn,
    SettlementOut,
    SuccessionIn,
    SuccessionOut,
)
from dashboard.brokers.succession_form import BYTES_MAX
from dashboard.cluster.errors import BrokerNotFound, ClusterUnreachable
from dashboard.cluster.gateway import gateway
from dashboard.cluster.settings_table import BrokerSetting, read_changes
from dashboard.rest.auth import Token
from dashboard.rest.checks import LevelOut
from dashboard.rest.lists import Listed
from dashboard.rest.refusals import FormProblem, NotPossible
from dashboard.rest.routes import Routes
from dashboard.rest.values import Given, MaybeFromSeconds, Out, named
from dashboard.status.board import Snapshot, board

router = Routes(asks_cluster=True)
machine = Routes()
LOOK = Token(Permission.CLUSTER_READ)
READ = Token(Permission.CONFIG_READ)
WRITE = Token(Permission.CONFIG_WRITE)


Source = Literal["default", "file", "changed while it runs", "follows from others", "set"]  # settings_table.SOURCES


class BrokerList(Listed[BrokerOut]):
    """Masters and slaves, by name."""


class MachineCheckOut(Out):
    """One thing that `gantry doctor` looks at."""

    level: LevelOut
    title: str


class MachineCheckList(Listed[MachineCheckOut]):
    """Of the machine that the dashboard runs on, what needs attention first."""


class SettingOut(Out):
    """One setting. refusal: why it can't be changed by a request; null: it can.

    source: "set" where the broker does not tell between its file and a change. changed_at, changed_by: the last change
    that the broker or the audit log knows.
    """

    key: str
    value: str
    default: str
    meaning: str = named("doc")
    allowed: str
    refusal: str | None
    source: Source
    changed_at: MaybeFromSeconds
    changed_by: str | None

    @classmethod
    def of_setting(cls, row: BrokerSetting, change: SettingChanged | None) -> SettingOut:
        if change is None:
            return cls.of(row, changed_by=None)
        return cls.of(row, changed_at=change.at, changed_by=change.who)


class SettingList(Listed[SettingOut]):
    """Everything a broker runs with; confidential values are masked."""


class SettingsIn(Given):
    """Keys and their new values: all are changed or none."""

    changes: dict[str, str] = Field(examples=[{"fileReservedTime": "48"}])
    dry_run: bool = Field(False, description="check and say what would change")


class ChangeOut(Out):
    """One setting that differs."""

    key: str
    before: str
    after: str


class SettingsChanged(Schema):
    """What was changed, or would be. detail: the broker's remark, if it made one."""

    broker: str
    is_done: bool
    changes: list[ChangeOut]
    detail: str | None = None


@machine.get("", auth=LOOK, summary="What `gantry doctor` finds of the dashboard's machine")
async def get_machine(request: HttpRequest) -> MachineCheckList:
    return MachineCheckList.whole(map(MachineCheckOut.of, await sync_to_async(machine_checks)(settings.APPLIANCE)))


@router.get("", auth=LOOK, summary="List brokers with their figures")
async def list_brokers(request: HttpRequest) -> BrokerList:
    return BrokerList.whole(map(BrokerOut.of_state, _seen().brokers))


@router.get("/{name}", auth=LOOK, summary="One broker's figures")
async def get_broker(request: HttpRequest, name: str) -> BrokerOut:
    for state in _seen().brokers:
        if state.name == name:
            return BrokerOut.of_state(state)
    raise BrokerNotFound(f"There is no broker {name}.")


def _seen() -> Snapshot:
    if board.snapshot is None:
        raise ClusterUnreachable("The sampler has not looked at the cluster yet.")
    return board.snapshot


@router.get("/{name}/settings", auth=READ, summary="A broker's settings")
async def get_broker_config(request: HttpRequest, name: str) -> SettingList:
    rows = await gateway().brokers.settings(await gateway().brokers.get(name))
    changed = newest_by_key(await changes_of(name))
    return SettingList.whole(SettingOut.of_setting(row, changed.get(row.key)) for row in rows)


@router.put("/{name}/settings", auth=WRITE, response=409, summary="Change a broker's settings while it runs")
async def update_broker_config(request: HttpRequest, name: str, body: SettingsIn) -> SettingsChanged:
    broker = await gateway().brokers.get(name)
    changes, problems = read_changes(await gateway().brokers.settings(broker), body.changes)
    if problems:
        raise FormProblem({key: [problem] for key, problem in problems.items()})
    out = SettingsChanged(broker=name, is_done=not body.dry_run, changes=[ChangeOut.of(item) for item in changes])
    if body.dry_run or not changes:
        note_nothing(request)
        return out
    out.detail = await gateway().brokers.change_settings(broker, changes)
    note(
        request,
        "broker settings changed",
        name,
        {item.key: {"before": item.before, "after": item.after} for item in changes},
    )
    return out


@router.get("/{name}/master", auth=WRITE, response=409, summary="Preview a switchover or promotion of a broker")
async def plan_master_change(
    request: HttpRequest,
    name: str,
    successor: str | None = Query(None, max_length=255, description="a slave's address; absent: the longest log"),
    accept_loss: int = Query(0, ge=0, le=BYTES_MAX),
    accept_unknown: bool = Query(False, description=UNKNOWN),
) -> SuccessionOut:
    plan = await gateway().succession.plan(name, successor, accepted_loss=accept_loss, accepts_unknown=accept_unknown)
    return SuccessionOut.of_plan(plan)


@router.post(
    "/{name}/master",
    auth=WRITE,
    response=409,
    summary="Switch over to a slave, or promote one",
    operation_id="change_master",
)
async def change_broker_master(request: HttpRequest, name: str, body: SuccessionIn) -> MasterOut:
    plan = await gateway().succession.plan(
        name, body.successor, accepted_loss=body.accept_loss, accepts_unknown=body.accept_unknown
    )
    if not plan.is_possible:
        note_nothing(request)
        raise NotPossible(f"No change: {'; '.join(plan.obstacles)}.")
    if body.seen != plan.seen:
        note_nothing(request)
        raise NotPossible("It has changed since the plan was shown. Request the plan again and send its `seen`.")
    username = request.auth.user.username  # type: ignore[attr-defined]
    return MasterOut.of(await change_master(gateway(), request, plan, username))


@router.get("/{name}/settlement", auth=WRITE, response=409, summary="Compare masters whose logs differ")
async def plan_settlement(request: HttpRequest, name: str) -> SettlementOut:
    return SettlementOut.of_masters(await gateway().succession.settlement(name))


@router.post("/{name}/settlement", auth=WRITE, response=409, summary="Choose which master's log counts")
async def settle_masters(request: HttpRequest, name: str, body: SettlementIn) -> MasterOut:
    found = await gateway().succession.settlement(name)
    if body.seen != found.seen:
        note_nothing(request)
        raise NotPossible("It has changed since it was shown. Request the settlement again and send its `seen`.")
    if body.keep not in [one.address for one in found.masters]:
        note_nothing(request)
        raise NotPossible(f"{body.keep} is not a master that answers. Promote it first.")
    username = request.auth.user.username  # type: ignore[attr-defined]
    return MasterOut.of(
        await choose_log(gateway(), request, name, body.keep, username, accepts_unknown=body.accept_unknown)
    )


@router.get(
    "/{name}/failover", auth=LOOK, response=409, summary="Automatic failover of a broker, as etcd has it on record"
)
async def get_failover(request: HttpRequest, name: str) -> FailoverOut:
    return FailoverOut.of_status(await gateway().succession.failover(name))


@router.post("/{name}/failover/pause", auth=WRITE, response=409, summary="Pause automatic failover of a broker")
async def pause_failover(request: HttpRequest, name: str, body: PauseIn) -> FailoverOut:
    until_ms = int((time.time() + body.minutes * 60) * 1000) if body.minutes else 0
    username = request.auth.user.username  # type: ignore[attr-defined]
    await master_change.pause_failover(gateway(), request, name, username, body.reason, until_ms)
    return FailoverOut.of_status(await gateway().succession.failover(name))


@router.post("/{name}/failover/resume", auth=WRITE, response=409, summary="Resume automatic failover of a broker")
async def resume_failover(request: HttpRequest, name: str, body: ResumeIn) -> FailoverOut:
    username = request.auth.user.username  # type: ignore[attr-defined]
    await master_change.resume_failover(gateway(), request, name, username, is_forced=body.force)
    return FailoverOut.of_status(await gateway().succession.failover(name))


@router.get("/{name}/drain", auth=WRITE, response=409, summary="How far a broker's drain is, and what is left")
async def get_drain(request: HttpRequest, name: str) -> DrainOut:
    return DrainOut.of(await drains.now(name))


@router.post("/{name}/drain", auth=WRITE, response=409, summary="Drain a broker: take it out of service")
async def drain_broker(request: HttpRequest, name: str, body: DrainIn) -> DrainOut:
    await start_drain(request, name, body.routes_s)
    return DrainOut.of(await drains.now(name))


@router.delete("/{name}/drain", auth=WRITE, response=409, summary="Put a drained broker back into service")
async def undrain_broker(request: HttpRequest, name: str) -> DrainOut:
    await undo_drain(request, name)
    return DrainOut.of(await drains.now(name))
