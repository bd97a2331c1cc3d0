"""Notes each request that administers: code, account, address, what it asked for, and what came of it.

The line is in the file before the answer is sent. A trail that can't be written stops no request: the log says so.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from appliance.acl.access import account_name
from appliance.audit.trail_file import NAME, TrailFile
from appliance.errors import BrokerError
from appliance.remoting.lane import Answer, Handler, Route
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.codes import RequestCode as Code
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, STAMP

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)
_log_limit = LogLimit()

FIELDS_MAX = 24
TEXT_CHARS_MAX = 300
DEPTH_MAX = 5
BODY_BYTES_MAX = 4096  # a longer one is told by its length
HIDDEN = "(hidden)"
SECRET_WORDS = ("secret", "password", "token", "signature")
ENVELOPE = frozenset({ACCESS_KEY, SIGNATURE, SECURITY_TOKEN, STAMP})  # said by other parts of the line
FAILED = -1  # result of a request whose handler failed; response codes are not negative

AUDITED = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.UPDATE_BROKER_CONFIG,
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.DELETE_SUBSCRIPTIONGROUP,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        Code.CLEAN_EXPIRED_CONSUMEQUEUE,
        Code.CONSUME_MESSAGE_DIRECTLY,
        Code.CLONE_GROUP_OFFSET,
        Code.CLEAN_UNUSED_TOPIC,
        Code.RESUME_CHECK_HALF_MESSAGE,
        Code.DELETE_EXPIRED_COMMITLOG,
        Code.PROMOTE_SLAVE,
        Code.HOLD_MESSAGES,
        Code.TELL_EPOCH,
        Code.JOIN_GROUP,
        Code.PAUSE_FAILOVER,
        Code.CLOSE_CONNECTIONS,
        Code.SET_MESSAGE_REQUEST_MODE,
        # the name server's
        Code.PUT_KV_CONFIG,
        Code.DELETE_KV_CONFIG,
        Code.WIPE_WRITE_PERM_OF_BROKER,
        Code.ADD_WRITE_PERM_OF_BROKER,
        Code.DELETE_TOPIC_IN_NAMESRV,
        Code.UPDATE_NAMESRV_CONFIG,
    }
)
_PROPERTIES_BODIES = frozenset({Code.UPDATE_BROKER_CONFIG, Code.UPDATE_NAMESRV_CONFIG})


def audited(routes: Mapping[int, Route], folder: Path) -> dict[int, Route]:
    """The same routes; those that administer leave a line in the folder's trail."""
    trail = TrailFile(folder / NAME)
    return {
        code: Route(_Noted(route.handler, trail).answer, route.lane) if code in AUDITED else route
        for code, route in routes.items()
    }


class _Noted:
    """One handler, with its trail."""

    def __init__(self, handler: Handler, trail: TrailFile) -> None:
        self._handler = handler
        self._trail = trail

    def answer(self, connection: ServerConnection, request: RemotingCommand) -> Awaitable[Answer]:
        """Call the handler at once: requests that come after this one find it done. The line is written afterwards."""
        entry = entry_of(connection, request)  # first: the connection's next request may name another account
        try:
            answer = self._handler(connection, request)
        except Exception as exc:
            return self._failed(entry, exc)
        return self._answered(entry, answer)

    async def _answered(self, entry: dict[str, Any], answer: Answer | Awaitable[Answer]) -> Answer:
        if inspect.isawaitable(answer):
            try:
                answer = await answer
            except Exception as exc:
                return await self._failed(entry, exc)
        result, remark = (answer.code, answer.remark) if isinstance(answer, RemotingCommand) else (0, None)
        await self._write(entry, result, remark or "")
        return answer

    async def _failed(self, entry: dict[str, Any], exc: Exception) -> Answer:
        try:
            await self._write(entry, exc.code if isinstance(exc, BrokerError) else FAILED, str(exc))
            raise exc
        finally:
            del exc  # its traceback has this frame: the two would keep the request until the next search for garbage

    async def _write(self, entry: dict[str, Any], result: int, remark: str) -> None:
        line = orjson.dumps(entry | {"result": int(result), "remark": remark[:TEXT_CHARS_MAX]})
        try:
            await asyncio.to_thread(self._trail.append, line)
        except OSError as exc:
            if _log_limit.allows("audit_not_written"):
                facts = {"event": "audit_not_written", "file": str(self._trail.path), "error": str(exc)}
                logger.error("audit trail not written", extra=facts)


def entry_of(connection: ServerConnection, request: RemotingCommand) -> dict[str, Any]:
    """One line, but for what came of it. at: ms since the epoch; account: "" without one."""
    entry: dict[str, Any] = {
        "at": int(time.time() * 1000),
        "code": int(request.code),
        "name": Code(request.code).name,
        "account": account_name(connection) or "",
        "address": connection.remote_text,
        "fields": _shown(request.ext_fields),
    }
    if request.body:
        entry["body"] = _body(request.code, request.body)
    return entry


def _body(code: int, body: bytes) -> Any:
    """What a person needs of it: settings by name, JSON with its secrets hidden, else how long it is."""
    if len(body) <= BODY_BYTES_MAX:
        text = body.decode("utf-8", "replace")
        if code in _PROPERTIES_BODIES:
            pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
            return _shown({key.strip(): value.strip() for key, _, value in pairs})
        try:
            return _shown(orjson.loads(body))
        except orjson.JSONDecodeError:
            pass  # told by its length, as one that is too long
    return f"{len(body)} bytes"


def _shown(value: Any, depth: int = 0) -> Any:
    """The value with bounded texts, members and depth, its secrets hidden."""
    if depth > DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        members = ((key, one) for key, one in value.items() if key not in ENVELOPE)
        return {
            str(key)[:TEXT_CHARS_MAX]: HIDDEN if _is_secret(str(key)) else _shown(one, depth + 1)
            for (key, one), _ in zip(members, range(FIELDS_MAX), strict=False)
        }
    if isinstance(value, list):
        return [_shown(one, depth + 1) for one in value[:FIELDS_MAX]]
    return value[:TEXT_CHARS_MAX] if isinstance(value, str) else value


def _is_secret(key: str) -> bool:
    return any(word in key.lower() for word in SECRET_WORDS)
