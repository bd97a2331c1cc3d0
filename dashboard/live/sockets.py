"""The dashboard's websocket. One per tab: subscribe to what the page shows, receive frames, at most four a second.

The page sends {"subscribe": ["overview", "waiting", "topic:NAME", "part:TARGET ADDRESS"]} and {"unsubscribe": [...]}.
Each subscription is checked against the account's permissions by itself. The session is looked at again every few
seconds, so the socket ends with it: by log-out, age, another password, a closed account or a changed role. Everything
is bounded: sockets of an account, subscriptions, size and rate of what comes in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections import Counter
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from django.utils import translation

from dashboard.access.permissions import Permission, Principal, account_of_session
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.language.choice import language_of_socket
from dashboard.limits.names import use
from dashboard.live import frames, layer
from dashboard.live.parts import PART, Part, may_show, part_watch
from dashboard.live.shares import NoPlace, Seat
from dashboard.live.tail import render_lines, topic_tail
from dashboard.status.board import board
from dashboard.status.metrics import topic_metrics
from dashboard.topics.metrics import put_size
from dashboard.topics.topic_cache import topic_book
from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)

FRAME_PERIOD_S = 0.25
RECHECK_S = 4.0
SOCKETS_OF_ONE_ACCOUNT_MAX = 400  # tabs; what is read for one is read for all
SESSION_SHARED_S = 1.0  # tabs of one session share a look at it
SESSIONS_SEEN_MAX = 1000
SUBSCRIPTIONS_MAX = 16
TEXT_CHARS_MAX = 4096
TEXTS_IN_TEN_SECONDS_MAX = 40
DEFAULT_PORTS = {"http": 80, "https": 443}
TOO_MANY_LISTS = "too many different lists are shown at the moment"
TOO_MANY_TOPICS = "too many topics are watched at the moment"
TOPIC_NAME = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")
CLOSE_NO_SESSION, CLOSE_TOO_MUCH, CLOSE_NOT_KNOWN, CLOSE_TOO_MANY_TABS = 4401, 4429, 4500, 4503

_log_limit = LogLimit()
_open_sockets: Counter[int] = Counter()
_sessions_seen: dict[str | None, tuple[float, Principal | None]] = {}  # when (monotonic), and whose it was


class LiveSocket(AsyncWebsocketConsumer):
    """See the module. (Channels says consumer; in this project a consumer is RocketMQ's.)"""

    async def connect(self) -> None:
        """Refuse strangers and foreign pages before the handshake is done."""
        self.subscribed: set[str] = set()
        self.seats: dict[str, Seat[Any]] = {}  # by channel, those that are shared
        self.lost: list[str] = []  # channels whose seat another account needed
        self.pending: dict[str, str] = {}  # by channel, as JSON
        self.news = asyncio.Event()
        self.received_at: list[float] = []
        self.owner: Principal | None = None
        self.tasks: list[asyncio.Task[None]] = []
        if not is_same_origin(self.scope):
            _tell_refusal((self.scope.get("client") or ["unknown"])[0])
            await self.close()
            return
        owner = await self._account()
        if owner is None or layer.state.why:
            await self.close()
            return
        if _open_sockets[owner.user.pk] >= SOCKETS_OF_ONE_ACCOUNT_MAX:
            await self.accept()  # only so can the page be told why
            await self.close(CLOSE_TOO_MANY_TABS)
            return
        self.owner = owner
        self.language = language_of_socket(self.scope, owner.user.language)
        translation.activate(self.language)  # of this socket's task
        _open_sockets[owner.user.pk] += 1
        await self.accept()
        self.tasks = [
            asyncio.create_task(self._send_frames(), name="socket-frames"),
            asyncio.create_task(self._watch_session(), name="socket-session"),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One socket's life. A layer that can't be reached ends it, with a code on which the page connects again."""
        self.subscribed, self.owner, self.tasks = set(), None, []
        self.layer_number = layer.state.number
        try:
            await super().__call__(scope, receive, send)
        except layer.layer_errors() as exc:
            if self.layer_number == layer.state.number:
                layer.state.failed(exc)
            with contextlib.suppress(Exception):  # it may be closed already
                await self.close(CLOSE_NOT_KNOWN)
        finally:
            await self._tidy()

    async def disconnect(self, code: int) -> None:
        await self._tidy()

    async def _tidy(self) -> None:
        """Leave nothing behind: tasks, groups, counts."""
        for task in self.tasks:
            task.cancel()
        for channel in list(self.subscribed):
            await self._leave(channel)
        if self.owner is not None:
            _open_sockets[self.owner.user.pk] -= 1
            if _open_sockets[self.owner.user.pk] <= 0:
                del _open_sockets[self.owner.user.pk]
            self.owner = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A request of the page. One too big or too many ends the socket; a malformed one is answered with an error."""
        now = time.monotonic()
        self.received_at = [at for at in self.received_at if now - at < 10] + [now]
        if bytes_data or len(text_data or "") > TEXT_CHARS_MAX or len(self.received_at) > TEXTS_IN_TEN_SECONDS_MAX:
            await self.close(CLOSE_TOO_MUCH)
            return
        try:
            request = json.loads(text_data or "")
            subscribe, unsubscribe = _names(request, "subscribe"), _names(request, "unsubscribe")
        except (ValueError, RecursionError):
            await self._refuse(None, "not understood")
            return
        for channel in unsubscribe:
            if channel in self.subscribed:
                await self._leave(channel)
        for channel in subscribe:
            await self._join(channel)

    # ---- subscriptions

    async def _join(self, channel: str) -> None:
        if self.owner is None or channel in self.subscribed:
            return
        use(self.owner.names)
        if len(self.subscribed) >= SUBSCRIPTIONS_MAX:
            await self._refuse(channel, "too many subscriptions")
            return
        if not may_subscribe(self.owner, channel):
            await self._refuse(channel, "not allowed")
            return
        if channel == frames.WAITING:
            await self._listen(channel)
            return
        if channel == frames.OVERVIEW:
            await self._listen(channel)
            start = frames.overview_start(board)
            if start is not None:
                self._queue(channel, json.dumps(start, separators=(",", ":")))
            return
        if channel.startswith(PART):
            await self._join_part(channel)
            return
        topic = channel.removeprefix(frames.TOPIC)
        try:
            self.seats[channel] = topic_tail.watch(topic, self.owner.user.pk, partial(self._lose, channel))
        except NoPlace:
            await self._refuse(channel, TOO_MANY_TOPICS)
            return
        await self._listen(channel)
        await self._start_topic(channel, topic)

    async def _join_part(self, channel: str) -> None:
        assert self.owner is not None
        try:
            self.seats[channel] = part_watch.watch(self._part(channel), self.owner, partial(self._lose, channel))
        except NoPlace:
            await self._refuse(channel, TOO_MANY_LISTS)
            return
        self.subscribed.add(channel)
        await self.channel_layer.group_add(self._part(channel).group, self.channel_name)

    def _part(self, channel: str) -> Part:
        assert self.owner is not None
        return Part(channel, self.language, self.owner.rights)

    async def _listen(self, channel: str) -> None:
        self.subscribed.add(channel)
        frames.listen(channel, self.language)
        await self.channel_layer.group_add(frames.group_of(channel, self.language), self.channel_name)

    async def _start_topic(self, channel: str, topic: str) -> None:
        """What arrived between the page and the socket: the newest messages, which the page merges by their place."""
        try:
            detail = await gateway().topics.get(topic)
            topic_tail.begin_at(topic, detail.queues)
            page = await gateway().messages.newest(detail, limit=frames.ROWS_MAX)
        except GatewayError as exc:
            await self._refuse(channel, str(exc))
            return
        rows = render_lines(topic, page.lines)
        metrics = topic_metrics(detail, gateway().topics.known_rate(topic))
        put_size(metrics, "topic", topic_book.facts(topic, detail.addresses))
        frame = frames.topic_frame(topic, metrics, rows) | {"all": True}
        self._queue(channel, json.dumps(frame, separators=(",", ":")))

    async def _leave(self, channel: str) -> None:
        self.subscribed.discard(channel)
        self.pending.pop(channel, None)
        if channel.startswith(PART):
            group = self._part(channel).group
            part_watch.unwatch(self.seats.pop(channel))
        else:
            group = frames.group_of(channel, self.language)
            frames.leave(channel, self.language)
            if channel in self.seats:
                topic_tail.unwatch(self.seats.pop(channel))
        if self.layer_number != layer.state.number:
            return
        try:
            await self.channel_layer.group_discard(group, self.channel_name)
        except layer.layer_errors() as exc:  # the layer forgets it by itself after a day
            layer.state.failed(exc)

    def _lose(self, channel: str) -> None:
        """Another account needed the seat: `_send_frames` tells the page."""
        self.lost.append(channel)
        self.news.set()

    async def _refuse(self, channel: str | None, reason: str) -> None:
        await self.send(json.dumps({"channel": channel, "error": reason}))

    # ---- frames

    async def live_frame(self, event: dict[str, Any]) -> None:
        """A frame for a group that this socket is in (Channels calls this by the event's type)."""
        if event["channel"] in self.subscribed:
            self._queue(event["channel"], event["text"])

    def _queue(self, channel: str, text: str) -> None:
        """Keep one frame a channel; frames that come too fast are merged."""
        waiting = self.pending.get(channel)
        if waiting is not None:
            merged = frames.merge(json.loads(waiting), json.loads(text))
            text = json.dumps(merged, separators=(",", ":"))
        self.pending[channel] = text
        self.news.set()

    async def _send_frames(self) -> None:
        while True:
            await self.news.wait()
            self.news.clear()
            while self.lost:
                channel = self.lost.pop()
                if channel in self.subscribed:
                    await self._leave(channel)
                    await self._refuse(channel, TOO_MANY_LISTS if channel.startswith(PART) else TOO_MANY_TOPICS)
            ready, self.pending = self.pending, {}
            if ready:
                await self.send(f'{{"frames":[{",".join(ready.values())}]}}')
            await asyncio.sleep(FRAME_PERIOD_S)

    # ---- the session

    async def _watch_session(self) -> None:
        while True:
            await asyncio.sleep(RECHECK_S)
            assert self.owner is not None
            code = await self._why_close(self.owner)
            if code is not None:
                with contextlib.suppress(Exception):  # it may be closing already
                    await self.close(code)
                return

    async def _why_close(self, owner: Principal) -> int | None:
        """The code to close with when the session is over or may something else now; None when all is as it was."""
        if self.layer_number != layer.state.number:  # it would get nothing any more
            return CLOSE_NOT_KNOWN
        try:
            now = await self._account(SESSION_SHARED_S)
        except DatabaseError:  # whether the session still holds is not known: the page connects again
            logger.exception("session not looked up", extra={"event": "socket_session_not_looked_up"})
            return CLOSE_NOT_KNOWN
        is_same = now is not None and now.user.pk == owner.user.pk and now.rights == owner.rights
        return None if is_same else CLOSE_NO_SESSION

    async def _account(self, max_age_s: float = 0.0) -> Principal | None:
        key = self.scope["session"].session_key
        at, known = _sessions_seen.get(key, (0.0, None))
        if time.monotonic() - at < max_age_s:
            return known
        found = await database_sync_to_async(account_of_session)(key)
        if len(_sessions_seen) >= SESSIONS_SEEN_MAX:
            _sessions_seen.clear()
        _sessions_seen[key] = (time.monotonic(), found)
        return found


def may_subscribe(owner: Principal, channel: str) -> bool:
    """Whether the account may see what the channel carries; no account may see a channel that does not exist."""
    if channel in (frames.OVERVIEW, frames.WAITING):
        return owner.may(Permission.CLUSTER_READ)
    if channel.startswith(PART):
        return may_show(owner, channel)
    if channel.startswith(frames.TOPIC) and TOPIC_NAME.fullmatch(channel, len(frames.TOPIC)):
        is_seen = owner.names.allows(channel.removeprefix(frames.TOPIC))
        return is_seen and owner.may(Permission.TOPICS_READ) and owner.may(Permission.MESSAGES_READ)
    return False


def _tell_refusal(address: str) -> None:
    if (left_out := _log_limit.left_out("socket_refused", address)) is not None:
        facts = {"event": "socket_refused", "reason": "origin", "address": address}
        logger.warning("socket rejected", extra=facts | ({"left_out": left_out} if left_out else {}))


def is_same_origin(scope: dict[str, Any]) -> bool:
    """Whether the page that opens the socket is this server's: Origin has its scheme, host and port, an allowed host.

    Scheme and host are those of the browser's address line; the web door has put what a trusted proxy says into them.
    """
    headers = dict(scope["headers"])
    origin, host = headers.get(b"origin", b"").decode("latin-1"), headers.get(b"host", b"").decode("latin-1")
    scheme = {"wss": "https", "https": "https"}.get(scope.get("scheme", "ws"), "http")
    expected = _place(f"{scheme}://{host}")
    if expected is None or _place(origin) != expected:
        return False
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _place(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None when it is none."""
    try:
        url = urlsplit(origin.lower())
        port = url.port or DEFAULT_PORTS[url.scheme]
    except (ValueError, KeyError):
        return None
    return (url.scheme, url.hostname, port) if url.hostname else None


def _names(request: Any, key: str) -> list[str]:
    if not isinstance(request, dict):
        raise ValueError("not an object")
    names = request.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key} is not a list of texts")
    return names[: SUBSCRIPTIONS_MAX * 2]
