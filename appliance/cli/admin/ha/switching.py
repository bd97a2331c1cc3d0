"""Ask in etcd for another master, and wait: it happens, or it is cancelled, however the command ends.

A switch that outlives its command could happen when it is not expected any more. One whose command is killed ends by
itself: see appliance.failover.switching.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from appliance.failover.view import Switch, TermState
from appliance.register.etcd import ANOTHER, EtcdError, OutcomeUnknown
from appliance.register.register import Register
from appliance.register.term import Term, View
from gantrymq.errors import GantryError

LOOK_S = 0.1
DROP_TRIES = 3  # it may have changed, and a member of etcd may be gone


class NotSwitched(GantryError):
    """It can't happen any more: etcd says why."""


async def until_switched(register: Register, view: View, switch: Switch, to: str, within_s: float) -> Term:
    """Until the next master serves, or has begun in this time. GantryError, with what became of the switch."""
    try:
        with contextlib.suppress(OutcomeUnknown):  # the looks tell
            await register.switch(view, switch)
        return await _until_begun(register, view.cluster_id, switch, to, within_s)
    except (EtcdError, NotSwitched):  # nothing was asked, or nothing is left
        raise
    except BaseException as exc:  # Ctrl-C, too
        why = str(exc) or "the command was interrupted"
        left = await _left(register, view.cluster_id, switch, why)
        if left or isinstance(exc, GantryError):
            raise GantryError(f"{why}: {left or 'the switchover is cancelled'}") from exc
        raise


async def _until_begun(register: Register, cluster_id: int, switch: Switch, to: str, within_s: float) -> Term:
    until, why = time.monotonic() + within_s, ""
    while True:
        is_over = time.monotonic() >= until
        try:
            view, why = await register.view(), ""
        except EtcdError as exc:  # one look is no end: it may happen meanwhile
            view, why = View(cluster_id=cluster_id), f", and etcd can't be asked: {exc}"
        if view.cluster_id != cluster_id:  # its record tells nothing of this switch
            view, why = View(), f", and {ANOTHER}"
        term = view.term
        if term is not None and term.epoch > switch.epoch and (is_over or term.state != TermState.OPENING):
            return term
        if view.cancelled[0] == switch.id:
            raise NotSwitched(f"{'' if term is None else term.owner} goes on as the master: {view.cancelled[1]}")
        if is_over:
            raise GantryError(f"{to} has not become the master within {within_s:.0f} s{why}")
        await asyncio.sleep(LOOK_S)


async def _left(register: Register, cluster_id: int, switch: Switch, reason: str) -> str:
    """Drop the switch, also one that etcd may still put there. What is left of it then; "": nothing. cluster_id: of the
    etcd in which it was asked for: another one has nothing to drop, and tells nothing."""
    failure = ""
    for _ in range(DROP_TRIES):
        try:
            view = await register.view()
            if view.cluster_id != cluster_id:
                raise EtcdError(ANOTHER)
            if view.term is not None and view.term.epoch > switch.epoch:
                return f"meanwhile {view.term.owner} has begun epoch {view.term.epoch}"
            if switch.is_planned and view.term is not None and view.term.is_given_up:
                return f"meanwhile {view.term.owner} has given up its role, and another broker takes it by itself"
            if view.term is not None and (view.switch is None or view.switch.id == switch.id):
                await register.drop_switch(view, reason, switch.id, has_not_begun=True)
        except EtcdError as exc:
            failure = str(exc)
        else:
            return ""
    return f"whether the switchover is cancelled is not known, `gantry admin ha status` tells: {failure}"
