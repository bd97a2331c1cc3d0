"""`gantry admin stats`: what goes through topics and groups."""

from __future__ import annotations

import argparse

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.topic_format import kind_of
from appliance.cli.tables import table
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.results import TopicTraffic
from gantrymq.errors import RouteNotFound


async def show_stats(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Traffic of one topic, or of all that have any."""
    topics = [arguments.topic] if arguments.topic else await _topics_worth_a_look(admin, arguments.all)
    found, failures = await ask_each(topics, admin.topics.traffic)
    if arguments.topic and failures:
        raise next(iter(failures.values()))
    rows = [
        row for topic in topics for row in found.get(topic, []) if arguments.topic or arguments.all or _is_busy(row)
    ]
    await _add_lag(admin, rows)
    cells = [(row.topic, row.group, row.in_tps, row.out_tps, row.in_today, row.out_today, row.lag) for row in rows]
    columns = ("topic", "group", "in/s", "delivered/s", "in 24 h", "delivered 24 h", "lag")
    lines = table(columns, cells, empty="no traffic; --all shows silent topics too")
    troubles = [f"{topic}: {failure}" for topic, failure in failures.items() if not isinstance(failure, RouteNotFound)]
    return Shown(rows, lines, troubles)


async def _topics_worth_a_look(admin: AdminClient, with_all: bool) -> list[str]:
    topics = sorted(await admin.topics.names())
    return topics if with_all else [topic for topic in topics if kind_of(topic, set()) != "system"]


def _is_busy(row: TopicTraffic) -> bool:
    return bool(row.in_today or row.out_today or row.in_tps or row.out_tps)


async def _add_lag(admin: AdminClient, rows: list[TopicTraffic]) -> None:
    with_group = [(row.topic, row.group) for row in rows if row.group is not None]
    found, _ = await ask_each(with_group, lambda pair: admin.offsets.progress(pair[1], pair[0]))
    for row in rows:
        if row.group is not None and (row.topic, row.group) in found:
            row.lag = found[row.topic, row.group].lag


def _stats_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="default: every topic with traffic")
    parser.add_argument("-a", "--all", action="store_true", help="include topics without traffic")


STATS = Command("traffic of one topic, or of all topics and their groups", show_stats, _stats_arguments)
