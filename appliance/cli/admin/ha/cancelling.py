"""`gantry admin ha switchover --cancel`: take back a switchover that was asked for, unless it has begun.

It has begun once the master has given up its role. Until then no member is waited for: the record says so by
compare-and-swap, and a master that was about to give its role up finds the switchover gone.
"""

from __future__ import annotations

import argparse
import contextlib

from appliance.cli.admin.command import Shown
from appliance.cli.admin.failures import NotThere
from appliance.failover.view import TermState
from appliance.register.register import Refused, Register
from appliance.register.term import View
from gantrymq.errors import ConfigError

TRIES = 5  # the master changes its in-sync set at the same time


def is_asked(arguments: argparse.Namespace) -> bool:
    """ConfigError for options that do not belong together."""
    if arguments.cancel and (arguments.to is not None or arguments.unclean):
        raise ConfigError("--cancel takes back the switchover that was asked for: leave --to and --unclean out")
    return bool(arguments.cancel)


def checked(broker: str, view: View) -> Shown:
    """NotThere when none is asked for; ConfigError when it has begun."""
    term, switch = view.term, view.switch
    assert term is not None
    if switch is None:
        raise NotThere(f"no switchover of {broker} is asked for: {term.owner} is the master in epoch {term.epoch}")
    if term.epoch != switch.epoch or term.is_given_up:
        is_released = term.epoch == switch.epoch
        now = f"{term.owner} has given up its role" if is_released else f"{term.owner} has epoch {term.epoch}"
        raise ConfigError(f"the switchover of {broker} has begun, and can't be cancelled: {now}")
    document = {"broker": broker, "cancelled": switch.id, "master": term.owner}
    what_now = "has died" if term.state == TermState.RELEASED else "goes on as the master"
    return Shown(document, [f"the switchover to member {switch.target} is cancelled: {term.owner} {what_now}"])


async def cancel(broker: str, register: Register, who: str) -> Shown:
    """Refused when the record changes under each try; what `checked` raises; EtcdError."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Refused):
            return await _try(broker, register, who)
    return await _try(broker, register, who)


async def _try(broker: str, register: Register, who: str) -> Shown:
    view = await register.view()
    shown = checked(broker, view)
    await register.drop_switch(view, f"{who} has cancelled it", has_not_begun=True)
    return shown
