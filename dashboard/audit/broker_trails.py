"""Takes over what brokers and name servers of this appliance wrote into their trails (appliance/audit), each line once.

Reading position and entries are written together. Lines that can't be read are told of, not skipped in silence.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, transaction

from appliance.audit.trail_file import NAME, older_part
from appliance.settings.loader import read_properties
from dashboard.audit.chain import Change, append
from dashboard.models.audit import Result, TrailPosition, Way

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
LINES_MAX = 500  # of one trail in one turn
BYTES_MAX = 1 << 20
TARGET_FIELDS = ("topic", "group", "groupName", "consumerGroup", "destGroup", "brokerName", "accessKey", "namespace")

ACTIONS = {
    "UPDATE_AND_CREATE_TOPIC": "topic created or changed",
    "UPDATE_AND_CREATE_TOPIC_LIST": "topics created or changed",
    "UPDATE_BROKER_CONFIG": "broker settings changed",
    "UPDATE_AND_CREATE_ACL_CONFIG": "client account created or changed",
    "DELETE_ACL_CONFIG": "client account deleted",
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG": "white list changed",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP": "group created or changed",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST": "groups created or changed",
    "DELETE_SUBSCRIPTIONGROUP": "group deleted",
    "DELETE_TOPIC_IN_BROKER": "topic deleted",
    "INVOKE_BROKER_TO_RESET_OFFSET": "group's offsets reset",
    "CLEAN_EXPIRED_CONSUMEQUEUE": "expired queues removed",
    "CONSUME_MESSAGE_DIRECTLY": "message delivered to a client",
    "CLONE_GROUP_OFFSET": "group's offsets copied",
    "CLEAN_UNUSED_TOPIC": "unused topics removed",
    "RESUME_CHECK_HALF_MESSAGE": "transaction checked again",
    "DELETE_EXPIRED_COMMITLOG": "expired log files removed",
    "PROMOTE_SLAVE": "slave promoted",
    "TELL_EPOCH": "broker notified of a new master",
    "JOIN_GROUP": "broker joined its group in etcd",
    "PAUSE_FAILOVER": "failover paused or resumed",
    "SET_MESSAGE_REQUEST_MODE": "consume mode changed",
    "HOLD_MESSAGES": "sends held back or resumed",
    "CLOSE_CONNECTIONS": "client disconnected",
    "PUT_KV_CONFIG": "name server's KV entry set",
    "DELETE_KV_CONFIG": "name server's KV entry removed",
    "WIPE_WRITE_PERM_OF_BROKER": "writes to a broker stopped",
    "ADD_WRITE_PERM_OF_BROKER": "writes to a broker allowed again",
    "DELETE_TOPIC_IN_NAMESRV": "topic removed from the name server",
    "UPDATE_NAMESRV_CONFIG": "name server settings changed",
}
SYSTEM_ERROR = 1  # what a broker answers for a fault of its own; higher codes are refusals


class TrailReader:
    """`run` takes over new lines until cancelled. trails: file to its process's name; the appliance's by default."""

    def __init__(self, trails: Mapping[Path, str] | None = None) -> None:
        self._trails = trails if trails is not None else trails_of_appliance()

    async def run(self) -> None:
        while True:
            try:
                await sync_to_async(self.read)()
            except (DatabaseError, OSError) as exc:  # the next turn reads the same lines again
                logger.debug("trails not read", extra={"event": "trails_not_read", "error": str(exc)})
            except Exception:  # a bug here must not end the watching for good
                logger.exception("reading trails failed", extra={"event": "sampling_failed"})
            await asyncio.sleep(PERIOD_S)

    def read(self) -> int:
        """Take over a bounded part of what is new; returns how many lines. Blocking. Raises OSError, DatabaseError."""
        return sum(_take_over(path, source) for path, source in self._trails.items())


def trails_of_appliance() -> dict[Path, str]:
    """The trails of the appliance's processes."""
    appliance = settings.APPLIANCE
    if appliance.attach:  # they lie where those processes run
        return {}
    found = {appliance.namesrv_folder / NAME: "namesrv"}
    for item in appliance.broker_processes:
        found[_store(appliance.brokers_folder / item.name) / NAME] = item.name
    return found


def _store(folder: Path) -> Path:
    """Where a broker's messages are, and its trail beside them."""
    try:
        properties = read_properties((folder / "broker.properties").read_text(encoding="utf-8"))
    except FileNotFoundError:  # its first start comes
        properties = {}
    return folder / Path(properties.get("storePathRootDir", "store")).expanduser()


def _take_over(path: Path, source: str) -> int:
    known = TrailPosition.objects.filter(path=str(path)).first()
    parts = _parts(path, known)
    if not parts:
        return 0
    part = parts[0]
    lines, end = _whole_lines(part)
    if not lines and len(parts) > 1:  # the older part is read to its end
        part = parts[1]
        lines, end = _whole_lines(part)
    changes = [_missed(source)] if parts[0].is_after_a_gap else []
    changes += [_change(line, source) for line in lines]
    if changes or (known is not None and (known.part, known.offset) != (part.name, end)):
        with transaction.atomic():
            append(changes)
            TrailPosition.objects.update_or_create(path=str(path), defaults={"part": part.name, "offset": end})
    return len(lines)


@dataclass(frozen=True, slots=True)
class _Part:
    """One file with where to go on. name: what its first line says. is_after_a_gap: the part before it went unread."""

    path: Path
    name: str
    offset: int
    is_after_a_gap: bool = False


def _parts(path: Path, known: TrailPosition | None) -> list[_Part]:
    """What there is to read, the oldest first."""
    found = [(part, _name_of(part)) for part in (older_part(path), path) if part.exists()]
    names = [name for _, name in found]
    if known is not None and known.part in names:
        at = names.index(known.part)
        return [_Part(part, name, known.offset if name == known.part else 0) for part, name in found[at:]]
    return [_Part(part, name, 0, known is not None and not index) for index, (part, name) in enumerate(found)]


def _name_of(part: Path) -> str:
    with part.open("rb") as file:
        try:
            return str(json.loads(file.readline(BYTES_MAX))["part"])[:32]
        except (ValueError, KeyError, TypeError):
            return ""  # it was changed by hand, or it is being made


def _whole_lines(part: _Part) -> tuple[list[bytes], int]:
    """The next whole lines of a part, but for its first, and the offset behind them."""
    with part.path.open("rb") as file:
        file.seek(part.offset)
        data = file.read(BYTES_MAX)
    lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1][:LINES_MAX]
    end = part.offset + sum(len(line) + 1 for line in lines)
    if lines and not part.offset and part.name:
        del lines[0]
    return [line for line in lines if line], end


def _change(line: bytes, source: str) -> Change:
    try:
        entry = json.loads(line)
        name, fields, result = entry["name"], entry["fields"], int(entry["result"])
        at = datetime.fromtimestamp(entry["at"] / 1000, UTC)
        account, address, remark = str(entry["account"]), str(entry["address"]), str(entry["remark"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return Change(
            who="", way=Way.REMOTING, address="", action="a line of a trail that can't be read", target=source,
            details={"line": line[:200].decode("utf-8", "replace")}, result=Result.FAILED,
        )  # fmt: skip
    details = {"broker": source, **dict(_details(fields)), **({"body": entry["body"]} if "body" in entry else {})}
    return Change(
        who=account, way=Way.REMOTING, address=address.rpartition(":")[0].strip("[]") or address,
        action=ACTIONS.get(name, name), target=_target(fields, entry.get("body"), source), details=details,
        result=Result.DONE if result == 0 else Result.REFUSED if result > SYSTEM_ERROR else Result.FAILED,
        told=remark if result else "", at=at,
    )  # fmt: skip


def _details(fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in fields.items() if value not in (None, ""))


def _target(fields: dict[str, Any], body: Any, source: str) -> str:
    """What the request was about: a topic, a group, an account, else the process."""
    for known in (fields, body if isinstance(body, dict) else {}):
        for key in TARGET_FIELDS:
            if isinstance(known.get(key), str) and known[key]:
                return str(known[key])
    return source


def _missed(source: str) -> Change:
    return Change(
        who="", way=Way.REMOTING, address="", action="entries missed", target=source, result=Result.FAILED,
        told="its trail was replaced twice before it was read",
    )  # fmt: skip
