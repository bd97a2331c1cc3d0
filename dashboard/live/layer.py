"""Sending to sockets through the channel layer: each frame is written as text once, however many sockets get it.

The layer is the process's memory, or Redis (`channel_layer_url`). A Redis that is away must hold up no page: a send to
it has a limit, pages hear that they are not live, and the Overview has a problem until a send arrives again.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from typing import Any

from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers, get_channel_layer
from django.conf import settings

from appliance.settings.service_urls import without_password
from dashboard.language.sentences import gettext
from dashboard.live import frames
from dashboard.status.check import Check, Level
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

SEND_LIMIT_S = 2.0
PROBE_GROUP = "live.probe"  # without sockets
TRY_AGAIN_S = 1.0  # after a send that failed, so that a Redis that hangs is not waited for with each frame


def layer_errors() -> tuple[type[Exception], ...]:
    """What a layer raises that can't be reached."""
    if not settings.APPLIANCE.channel_layer_url:
        return (OSError, TimeoutError)
    from redis.exceptions import RedisError  # there only where it is wanted

    return (OSError, TimeoutError, RedisError)


@dataclass(slots=True)
class LayerState:
    """Whether sockets can be reached. number: of the layer in use; sockets of an earlier one end."""

    why: str = ""
    number: int = 0
    tried_at: float = 0.0  # by the monotonic clock

    def failed(self, exc: Exception) -> None:
        """Note it, told once, and begin with another layer: one whose connections broke does not get over it."""
        self.tried_at = time.monotonic()
        channel_layers.backends.pop(DEFAULT_CHANNEL_LAYER, None)
        if not self.why:
            self.number += 1
            logger.warning("pages are not live", extra={"event": "layer_unreachable", "reason": repr(exc)[:200]})
        self.why = f"{type(exc).__name__}: {exc}"[:200] if str(exc) else type(exc).__name__

    def worked(self) -> None:
        if self.why:
            logger.warning("pages are live again", extra={"event": "layer_reachable"})
        self.why = ""

    def problems(self) -> list[Check]:
        """For the Overview."""
        if not self.why:
            return []
        return [
            Check(
                Level.WARN,
                gettext("Pages are not live"),
                gettext("Redis at %(address)s can't be reached (%(why)s)")
                % {"address": without_password(settings.APPLIANCE.channel_layer_url), "why": self.why},
                gettext("Pages poll their values every few seconds. Start Redis, or remove channel_layer_url."),
            )
        ]


state = LayerState()


async def probe() -> None:
    """Look whether Redis is there; while it is away no tab stays, so no frame would find out."""
    if settings.APPLIANCE.channel_layer_url:
        await send_frame("", PROBE_GROUP, {})


async def send_frame(channel: str, group: str, frame: frames.Frame) -> None:
    """To every socket of the group."""
    layer = get_channel_layer()
    if layer is None or (state.why and time.monotonic() - state.tried_at < TRY_AGAIN_S):
        return
    text = json.dumps(frame, separators=(",", ":"))
    event: dict[str, Any] = {"type": "live.frame", "channel": channel, "text": text}
    # Memory needs no limit: all of a wait would be this process's own standstill, and no tab is lost by that.
    limit_s = SEND_LIMIT_S if settings.APPLIANCE.channel_layer_url else None
    try:
        async with timeout(limit_s):
            await layer.group_send(group, event)
    except layer_errors() as exc:
        state.failed(exc)
    else:
        state.worked()
