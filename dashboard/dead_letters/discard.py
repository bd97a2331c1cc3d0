"""Discarding a group's dead letters: all of them, for good. Page and REST do the same.

A log is only appended to, so no single letter can be taken out of it: their topic is deleted, and made anew with the
next letter.
"""

from __future__ import annotations

from django.utils.translation import gettext

from dashboard.cluster.errors import BrokerUnreachable, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.dead_letters import letters
from dashboard.models import PutBackRun


async def discard(gateway: Gateway, group: str, expected: int) -> int:
    """Delete the letters if there are as many as expected; returns how many there were.

    Raises GroupNotFound, NotAllowed, Refused, BrokerUnreachable.
    """
    detail = await letters.detail_of(gateway, group)
    if detail.failures:
        raise BrokerUnreachable(f"{detail.failures[0].what}: {detail.failures[0].reason}")
    if detail.stored != expected:
        raise NotAllowed(
            gettext("%(group)s has %(stored)s dead letters now, not %(expected)s. Nothing was discarded.")
            % {"group": group, "stored": detail.stored, "expected": expected}
        )
    if await PutBackRun.objects.filter(group=group, state=PutBackRun.State.RUNNING).aexists():
        raise NotAllowed(gettext("Messages of %(group)s are being resent: stop that run first.") % {"group": group})
    await gateway.topics.delete(detail.name)
    return detail.stored
