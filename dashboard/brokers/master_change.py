"""A change of master, with what the log and the audit log say of it: page and REST do it here."""

from __future__ import annotations

import logging

from django.http import HttpRequest

from dashboard.audit.notes import note
from dashboard.cluster.errors import NoSuccessor
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.succession import Succession
from dashboard.language.sentences import in_english
from gantrymq.client.admin.succession import Changed

logger = logging.getLogger(__name__)


async def choose_log(
    gateway: Gateway, request: HttpRequest, name: str, keep: str, username: str, *, accepts_unknown: bool
) -> Changed:
    """Have one master's log count, and leave who asked for it in the log, whatever comes of it. Raises NoSuccessor."""
    noted = {"keep": keep, "accept_unknown": accepts_unknown}
    facts = {"broker": name, "username": username, **noted}
    logger.warning("choice of a log asked for", extra={"event": "log_choice_asked", **facts})
    try:
        changed = await gateway.succession.settle(name, keep, accepts_unknown=accepts_unknown)
    except NoSuccessor as exc:
        why = in_english(str(exc))
        note(request, "choice of a log failed", name, {"why": why, **noted})
        logger.warning("choice of a log failed", extra={"event": "log_choice_failed", "why": why, **facts})
        raise
    logger.warning("log chosen", extra={"event": "log_chosen", "epoch": changed.epoch, **facts})
    note(request, "log chosen", name, noted | {"epoch": changed.epoch})
    return changed


async def change_master(gateway: Gateway, request: HttpRequest, plan: Succession, username: str) -> Changed:
    """Do it, and leave who asked for it in the log, whatever comes of it. Raises NoSuccessor."""
    assert plan.promotion is not None
    facts = {
        "broker": plan.broker_name,
        "successor": plan.promotion.slave.address,
        "predecessor": plan.master.address if plan.master else None,
        "epoch": plan.promotion.epoch,
        "missing_bytes": None if plan.master else plan.promotion.slave.missing_bytes,
        "username": username,
    }
    noted = {key: facts[key] for key in ("successor", "predecessor", "epoch", "missing_bytes")}
    logger.warning("change of master requested", extra={"event": "master_change_asked", **facts})
    try:
        changed = await gateway.succession.change(plan)
    except NoSuccessor as exc:
        note(request, "change of master failed", plan.broker_name, {"why": in_english(str(exc)), **noted})
        logger.warning(
            "change of master failed", extra={"event": "master_change_failed", "why": in_english(str(exc)), **facts}
        )
        raise
    logger.warning("master changed", extra={"event": "master_changed", "seconds": round(changed.seconds, 3), **facts})
    note(request, "master changed", plan.broker_name, noted)
    return changed


async def pause_failover(
    gateway: Gateway, request: HttpRequest, name: str, username: str, why: str, until_ms: int
) -> None:
    """Pause it, and leave who asked for it in the log. Raises NoSuccessor."""
    await gateway.succession.pause(name, username, why, until_ms)
    facts = {"broker": name, "username": username, "why": why}
    logger.warning("failover paused", extra={"event": "failover_paused", **facts})
    note(request, "failover paused", name, {"why": why, "until_ms": until_ms})


async def resume_failover(gateway: Gateway, request: HttpRequest, name: str, username: str, *, is_forced: bool) -> None:
    """End the pause, and leave who asked for it in the log. Raises NoSuccessor."""
    await gateway.succession.resume(name, username, is_forced=is_forced)
    logger.warning("failover resumed", extra={"event": "failover_resumed", "broker": name, "username": username})
    note(request, "failover resumed", name, {"force": is_forced})
