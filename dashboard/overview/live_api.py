"""/api/v1/live: the live pages' news as server-sent events.

One stream has the cluster each second, or with `topic` the messages of a topic as they arrive. A stream ends after some
minutes, when its token does, and with the connection; clients connect again, as browsers' EventSource does by itself.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from ninja import Query

from dashboard.access.permissions import Permission, Principal, bearer_principal
from dashboard.cluster.gateway import gateway
from dashboard.cluster.values import QueueExtent
from dashboard.live.shares import NoPlace
from dashboard.live.tail import topic_tail
from dashboard.messages.schemas import MessageOut
from dashboard.overview.schemas import ClusterOut
from dashboard.rest.auth import Token
from dashboard.rest.refusals import NotPossible
from dashboard.rest.rendering import json_text
from dashboard.rest.routes import Routes
from dashboard.status.board import board
from dashboard.status.verdict import judge

router = Routes(asks_cluster=True)
READ = Token(Permission.TOPICS_READ)  # of a topic; the cluster needs more
STREAM_SECONDS_MAX = 600.0  # what a client that reads nothing can make the process keep is bounded by this
STREAMS_OF_ONE_ACCOUNT_MAX = 20
LOOK_S = 0.5  # at the board
RECHECK_S = 5.0  # whether the token still holds
SILENCE_S = 15.0  # then a comment, so that proxies and clients know that the stream lives
RETRY_MS = 2000
TOO_MANY = "Too many topics are watched at the moment."

_open_streams: Counter[int] = Counter()


@router.get("", auth=READ, response=(404, 409), summary="News as server-sent events")
async def stream_news(
    request: HttpRequest,
    topic: str = Query("", max_length=127, description="its messages, instead of the cluster's state"),
) -> HttpResponseBase:
    owner: Principal = request.auth  # type: ignore[attr-defined]
    if not owner.may(Permission.MESSAGES_READ if topic else Permission.CLUSTER_READ):
        raise NotPossible(f"This token cannot read {'messages' if topic else 'about the cluster'}.", status=403)
    if topic and not owner.names.allows(topic):
        raise owner.names.refusal()
    if _open_streams[owner.user.pk] >= STREAMS_OF_ONE_ACCOUNT_MAX:
        raise NotPossible(f"{STREAMS_OF_ONE_ACCOUNT_MAX} streams of this account are open. Close one first.")
    if topic:
        detail = await gateway().topics.get(topic)  # or 404
        if not topic_tail.has_place(topic, owner.user.pk):
            raise NotPossible(TOO_MANY, status=503)
    news = messages_of(topic, detail.queues, owner.user.pk) if topic else cluster_states()
    response = StreamingHttpResponse(_events(request, owner, news), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # nginx would hold events back
    return response


async def cluster_states() -> AsyncIterator[tuple[str, str] | None]:
    """Each new state of the board; None for a look that found none."""
    seen = 0.0
    while True:
        snapshot = board.snapshot
        if snapshot is not None and snapshot.at != seen:
            seen = snapshot.at
            yield "cluster", json_text(ClusterOut.of(snapshot, judge(snapshot)).dict())
        else:
            yield None
        await asyncio.sleep(LOOK_S)


async def messages_of(topic: str, queues: Sequence[QueueExtent], account: int) -> AsyncIterator[tuple[str, str] | None]:
    """What arrives in the topic behind these ends, oldest first; `more`: how many of too many there were besides."""
    try:
        with topic_tail.listen(topic, account) as arrivals:
            topic_tail.begin_at(topic, queues)
            while True:
                try:
                    messages, more = arrivals.get_nowait()
                except asyncio.QueueEmpty:
                    yield None
                    await asyncio.sleep(LOOK_S)
                    continue
                lines = [MessageOut.of(message).dict() for message in reversed(messages)]
                told = {"topic": topic, "items": lines, "more": more + arrivals.take_lost()}
                yield "messages", json_text(told)
    except NoPlace:
        yield "refused", json.dumps({"detail": TOO_MANY})


async def _events(
    request: HttpRequest, owner: Principal, news: AsyncIterator[tuple[str, str] | None]
) -> AsyncIterator[bytes]:
    """The stream's text. Owns the account's count and the source: both go when the stream ends, however it does."""
    _open_streams[owner.user.pk] += 1
    begun = checked = told = time.monotonic()
    try:
        yield f"retry: {RETRY_MS}\n\n".encode()
        async for event in news:
            now = time.monotonic()
            if now - checked >= RECHECK_S:
                checked, still = now, await bearer_principal(request)
                if still is None or still.rights != owner.rights:
                    return
            if now - begun >= STREAM_SECONDS_MAX:
                return
            if event is not None:
                told = now
                yield f"event: {event[0]}\ndata: {event[1]}\n\n".encode()
            elif now - told >= SILENCE_S:
                told = now
                yield b": nothing new\n\n"
    finally:
        _open_streams[owner.user.pk] -= 1
        if _open_streams[owner.user.pk] <= 0:
            del _open_streams[owner.user.pk]
        await news.aclose()  # type: ignore[attr-defined]
