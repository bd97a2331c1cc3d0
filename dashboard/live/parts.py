"""Parts of pages that are drawn once and sent to every tab that shows them: lists of topics and groups, a group.

A tab subscribes to `part:TARGET ADDRESS`, with the address of its page. The view of that address draws the part, as it
would for a tab that asks; tabs of accounts with the same rights and language share it. So what a tab more costs is the
sending of a text.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import HttpRequest, QueryDict
from django.urls import Resolver404, resolve
from django.utils import translation

from dashboard.access.permissions import Permission, Principal
from dashboard.limits.names import NameLimit, use
from dashboard.live.frames import Frame
from dashboard.live.layer import send_frame
from dashboard.live.shares import Seat, Shares
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

PART = "part:"
PAGES = {  # by target
    "topic-list": "topics",
    "group-list": "groups",
    "group-now": "group",
    "group-tiles": "group",
    "client-list": "clients",
}
LOOK_S = 0.25
EACH_S = {"topic-list": 2.0, "group-list": 2.0, "group-now": 3.0, "group-tiles": 2.0, "client-list": 2.0}
DRAW_LIMIT_S = 30.0
PARTS_MAX = 64  # different ones at once, which accounts share


class Part(NamedTuple):
    """What is drawn once: for tabs with this channel, language and these rights."""

    channel: str
    language: str
    rights: tuple[frozenset[Permission], NameLimit]

    @property
    def target(self) -> str:
        return self.channel.removeprefix(PART).partition(" ")[0]

    @property
    def address(self) -> str:
        return self.channel.partition(" ")[2]

    @property
    def group(self) -> str:
        """The Channels group of its sockets."""
        permissions, names = self.rights
        words = [self.channel, self.language, *sorted(permissions), "", *names.prefixes]
        return "live.part." + hashlib.sha256("\0".join(words).encode()).hexdigest()[:40]


@dataclass(slots=True)
class _Shown:
    """For whom it is drawn, when it is due (monotonic), and what was sent last."""

    principal: Principal
    due: float = 0.0
    drawing: asyncio.Task[None] | None = None
    sent: str = ""


class PartWatch:
    """Knows which parts are shown; `run` draws them."""

    def __init__(self) -> None:
        self._shares: Shares[Part] = Shares()
        self._shown: dict[Part, _Shown] = {}

    @property
    def shown(self) -> frozenset[Part]:
        return frozenset(self._shown)

    @property
    def tabs(self) -> int:
        """Subscriptions of all tabs."""
        return self._shares.seats

    def watch(self, part: Part, principal: Principal, lost: Callable[[], None]) -> Seat[Part]:
        """One tab more. lost: see Seat. Raises NoPlace."""
        seat = self._shares.take(part, principal.user.pk, PARTS_MAX, lost)
        shown = self._shown.setdefault(part, _Shown(principal))
        shown.sent = ""  # the new tab may have missed what the others got
        self._forget_others()
        return seat

    def unwatch(self, seat: Seat[Part]) -> None:
        self._shares.give_back(seat)
        self._forget_others()

    def _forget_others(self) -> None:
        for part in self._shown.keys() - self._shares.things:
            del self._shown[part]

    async def run(self) -> None:
        """Draw what is due until cancelled. One that takes long holds up no other."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                now = time.monotonic()
                for part, shown in self._shown.items():
                    if shown.due <= now and (shown.drawing is None or shown.drawing.done()):
                        shown.due = now + EACH_S[part.target]
                        shown.drawing = tasks.create_task(self._draw_safely(part, shown), name="part of a page")
                await asyncio.sleep(LOOK_S)

    async def _draw_safely(self, part: Part, shown: _Shown) -> None:
        try:
            async with timeout(DRAW_LIMIT_S):
                await self.draw(part, shown)
        except Exception:  # a bug in one page must not end the others
            logger.exception(
                "part of the page not rendered", extra={"event": "part_not_drawn", "address": part.address}
            )

    async def draw(self, part: Part, shown: _Shown) -> None:
        """One drawing, sent to all. Of what did not change only the time is sent; of a page that fails nothing."""
        with translation.override(part.language):
            html = await draw_part(part, shown.principal)
        if html is None or part not in self._shown:
            return
        frame: Frame = {"channel": part.channel, "now": round(time.time(), 3)}
        if html != shown.sent:
            shown.sent = html
            frame["html"] = html
        await send_frame(part.channel, part.group, frame)


def may_show(principal: Principal, channel: str) -> bool:
    """Whether the account may see the page, and the page has such a part."""
    target, _, address = channel.removeprefix(PART).partition(" ")
    with contextlib.suppress(Resolver404):
        match = resolve(address.partition("?")[0])
        permission = getattr(match.func, "permission", None)
        name = match.kwargs.get("name")
        is_seen = name is None or principal.names.allows(str(name))
        return PAGES.get(target) == match.url_name and permission is not None and is_seen and principal.may(permission)
    return False


async def draw_part(part: Part, principal: Principal) -> str | None:
    """The part as its page's view draws it; None when the view answers with an error."""
    use(principal.names)  # in this task
    path, _, query = part.address.partition("?")
    match = resolve(path)
    request = HttpRequest()
    request.method, request.path, request.path_info, request.GET = "GET", path, path, QueryDict(query)
    request.META = {
        "REQUEST_METHOD": "GET", "QUERY_STRING": query, "SERVER_NAME": "localhost", "SERVER_PORT": "80",
        "HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": part.target,
    }  # fmt: skip
    request.user = principal.user
    request.principal = principal  # type: ignore[attr-defined]
    request.resolver_match = match
    response: Any = await match.func(request, **match.kwargs)
    return response.content.decode() if response.status_code == 200 else None


part_watch = PartWatch()
