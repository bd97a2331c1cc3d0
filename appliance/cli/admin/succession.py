"""`gantry admin promote | settle | switchover`: which broker of a name is the master."""

from __future__ import annotations

import argparse
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.tables import Cell, facts
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.members import Member
from gantrymq.client.admin.promotion import ACCEPT_UNKNOWN, NO_REGISTER, Promotion
from gantrymq.client.admin.succession import Changed
from gantrymq.errors import ConfigError


async def plan_promotion(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Who would become the master, and what speaks against it. ConfigError for that, unless --force."""
    promotion = await _promotion(admin, arguments)
    left = promotion.left_with(accept_unknown=arguments.accept_unknown or promotion.is_for_register)
    if left and not arguments.force:
        further = f" {ACCEPT_UNKNOWN}." if set(left) & set(promotion.unknown) else ""
        raise ConfigError(
            f"{'; '.join(left)}. Nothing was changed. --accept-loss BYTES accepts missing bytes by number.{further} "
            "--force ignores every check"
        )
    return Shown(_document(promotion), _lines(promotion))


async def promote(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    promotion = await _promotion(admin, arguments)
    changed = await admin.succession.promote(promotion, force=arguments.force, accept_unknown=arguments.accept_unknown)
    return _done(changed, *_beware(promotion))


async def plan_settling(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Whose log would count, and who would give up what they have beside it. ConfigError for what speaks against it."""
    asked = (arguments.broker, arguments.keep)
    members = (await admin.succession.settlement(*asked, accept_unknown=arguments.accept_unknown)).members
    rows = [
        {
            "address": each.address,
            "end": each.end,
            "epoch": each.log_epoch,
            "epochId": each.info.get("epochId", "none"),
            "is": "kept" if each.address == arguments.keep else each.state or ("answers" if each.answers else "silent"),
        }
        for each in members
    ]
    lines = [
        f"{row['address']}: epoch {row['epoch']} ({row['epochId']}), log ends at {row['end']}, {row['is']}"
        for row in rows
    ]
    return Shown({"broker": arguments.broker, "keep": arguments.keep, "members": rows}, lines)


async def settle(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    changed = await admin.succession.settle(arguments.broker, arguments.keep, accept_unknown=arguments.accept_unknown)
    return _done(changed)


async def plan_switchover(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Who would take over from whom. ConfigError when that can't be done now."""
    master, promotion = await admin.succession.switch(arguments.broker, arguments.to)
    if promotion.obstacles:
        raise ConfigError(f"{'; '.join(promotion.obstacles)}. Nothing was changed")
    return Shown(_document(promotion), [f"{master.address} becomes a slave", *_lines(promotion)])


async def switch_over(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    master, promotion = await admin.succession.switch(arguments.broker, arguments.to)
    changed = await admin.succession.switch_over(master, promotion)
    return _done(changed, f"{master.address} follows it as a slave", *_beware(promotion))


async def _promotion(admin: AdminClient, arguments: argparse.Namespace) -> Promotion:
    return await admin.succession.promotion(
        arguments.broker, arguments.to, accepted_loss=arguments.accept_loss, from_apache=arguments.from_apache
    )


def _document(promotion: Promotion) -> dict[str, Any]:
    slave = promotion.slave
    return {
        "broker": promotion.broker_name,
        "address": slave.address,
        "epoch": promotion.epoch,
        "end": slave.end,
        "missingBytes": slave.missing_bytes,
        "masterHeardSecondsAgo": slave.heard,
        "obstacles": promotion.obstacles,
    }


def _lines(promotion: Promotion) -> list[str]:
    slave = promotion.slave
    rows: list[tuple[str, Cell]] = [
        ("broker", promotion.broker_name),
        ("becomes master", slave.address),
        ("epoch", promotion.epoch),
        ("its log ends at", slave.end),
        ("lacks at least", _missing(slave)),
        ("is now", slave.state),
    ]
    lines = [*facts(rows), *(f"against it: {obstacle}" for obstacle in promotion.obstacles)]
    if promotion.unknown and promotion.is_for_register:
        lines.append("the slave compares this with the in-sync set in etcd, and refuses when that proves nothing")
    return [*lines, *_beware(promotion)]


def _beware(promotion: Promotion) -> list[str]:
    return [] if promotion.has_register else [f"beware: {NO_REGISTER}"]


def _missing(slave: Member) -> str:
    if slave.missing_bytes is None:
        return "unknown"
    return f"{slave.missing_bytes:,} bytes, of what its master had {slave.heard} s ago"


def _done(changed: Changed, *more: str) -> Shown:
    document = {
        "broker": changed.broker_name,
        "master": changed.address,
        "epoch": changed.epoch,
        "seconds": round(changed.seconds, 3),
    }
    text = f"{changed.address} is the master of {changed.broker_name} in epoch {changed.epoch}, after"
    return Shown(document, [f"{text} {changed.seconds:.1f} s", *more])


def _broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name that its master and slaves share")
    parser.add_argument("--to", metavar="HOST:PORT", help="this slave (default: the one with the longest log)")


def _promote_arguments(parser: argparse.ArgumentParser) -> None:
    _broker_arguments(parser)
    parser.add_argument(
        "--accept-loss", type=int, default=0, metavar="BYTES", help="bytes of the old master's log that may be missing"
    )
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="promote although no member is known to have all acknowledged messages, or another master may be serving",
    )
    parser.add_argument(
        "--from-apache", action="store_true", help="the master was Apache RocketMQ's: fenced, then stopped"
    )
    parser.add_argument("--force", action="store_true", help="ignore every check")


def _settle_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name that its master and slaves share")
    parser.add_argument("--keep", metavar="HOST:PORT", required=True, help="the master whose log counts")
    parser.add_argument(
        "--accept-unknown", action="store_true", help="go on although members or name servers do not answer"
    )


COMMANDS = {
    "promote": {
        "": Command(
            "promote a slave to master when the master is lost for good",
            promote,
            _promote_arguments,
            plan_promotion,
            loses=True,
        )
    },
    "settle": {
        "": Command(
            "choose the master whose log counts when an epoch was begun twice or confirmed messages would be cut",
            settle,
            _settle_arguments,
            plan_settling,
            loses=True,
        )
    },
    "switchover": {
        "": Command(
            "let a running master exchange roles with its slave; nothing is lost",
            switch_over,
            _broker_arguments,
            plan_switchover,
            loses=True,
        )
    },
}
