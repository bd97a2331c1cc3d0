"""Work out what a cluster needs for a rate of messages: brokers, disks, network, name servers, dashboards, Spark.

  gantry capacity --rate 50000 --size 2048                one number of messages a second, bytes of a body
  gantry capacity --rate 1e6 --copies 1 --groups 3        a slave for each master; each message read by three groups
  gantry capacity --rate 1e6 --set send_us=9 --set nic_mb_s=3125   with what you measured yourself

Costs are what docs/performance.md shows, on the machine that it names: measure yours with `gantry bench` and give them
with --set. All of it is arithmetic from those costs: what no machine here has run is said in docs/scale.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gantrymq.errors import ConfigError

DAY_S = 86_400
KIB = 1024
CORE_USED = 0.7  # of its core that a broker is planned for: the rest is for bursts, and for starts after a crash
LINK_USED = 0.7  # of disks and network, for the same
NAME_SERVERS_MIN = 2  # one may be lost
EXECUTOR_CORES = 2
ROUTES_S = 30  # a client asks for the route of each of its topics so often


@dataclass(frozen=True, slots=True)
class Costs:
    """What one thing costs; `us` is microseconds of CPU. docs/scale.md says where each comes from."""

    send_us: float = 3.3  # without the body's bytes: 128 B cost 3.5, 1 KB 5.1
    send_us_kib: float = 1.8  # for each KiB of the body
    pull_us: float = 0.9  # a message, in pulls of 32
    give_us: float = 0.9  # a master, for each message that it gives to a slave
    copy_us: float = 1.2  # a slave, for each message that it copies
    route_us: float = 24.0  # a name server, for a route of one broker
    route_broker_us: float = 11.0  # for each further broker in it, with its slave
    read_us: float = 1.0  # Spark, for each message that it reads from the log
    overhead: int = 200  # bytes of a message beside its body: header, topic, properties, queue unit
    broker_mib: float = 79.0  # a broker's own memory after the loads, without the page cache
    disk_mb_s: float = 200.0  # yours: what one disk takes, written from beginning to end
    disk_tb: float = 4.0  # yours
    disk_full: float = 0.75  # of a disk: where brokers begin to delete, diskMaxUsedSpaceRatio
    nic_mb_s: float = 1250.0  # yours: 10 Gbit/s


@dataclass(frozen=True, slots=True)
class Goal:
    """What the cluster is to do. copies: slaves of each master. groups: how many read each message."""

    rate: float
    size: int = KIB
    copies: int = 1
    groups: int = 2
    days: float = 3.0
    clients: int = 0  # 0: one for each 1 000 messages a second, ten at least
    topics: int = 50  # of a client
    spread: int = 16  # brokers of a topic; 0: all


@dataclass(frozen=True, slots=True)
class Need:
    """What it takes. by: masters that each reason wants by itself. Cores are busy ones, of all processes of a kind."""

    by: dict[str, float]
    copies: int
    write_mb_s: float  # of all masters
    sent_mb_s: float
    stored_tb: float  # slaves included
    name_server_cores: float
    spark_cores: float
    broker_mib: float

    @property
    def first(self) -> str:
        """The reason that wants most masters: it is what breaks first."""
        return max(self.by, key=lambda reason: self.by[reason])

    @property
    def masters(self) -> int:
        return masters_for(self.by)

    @property
    def name_servers(self) -> int:
        return max(NAME_SERVERS_MIN, math.ceil(self.name_server_cores / CORE_USED))

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Name and figure, for people."""
        slaves = self.masters * self.copies
        return [
            ("masters, slaves", f"{self.masters} + {slaves}"),
            ("what breaks first", self.first),
            *((f"masters for {reason}", number(count)) for reason, count in self.by.items()),
            ("written, MB/s", number(self.write_mb_s)),
            ("sent by masters, MB/s", number(self.sent_mb_s)),
            ("stored, TB", number(self.stored_tb)),
            ("disks, one a broker", number(self.masters + slaves)),
            ("name servers", number(self.name_servers)),
            ("name servers, cores", number(self.name_server_cores)),
            ("dashboards", "1"),
            ("Spark executors, 2 cores", number(math.ceil(self.spark_cores / EXECUTOR_CORES))),
            ("Spark reads, cores", number(self.spark_cores)),
            ("memory of brokers, GiB", number((self.masters + slaves) * self.broker_mib / KIB)),
        ]


def masters_for(by: dict[str, float]) -> int:
    return max(1, math.ceil(max(by.values())))


def work_out(goal: Goal, costs: Costs) -> Need:
    """Pure arithmetic; docs/scale.md has each line as a formula."""
    master_us = (
        costs.send_us + costs.send_us_kib * goal.size / KIB + costs.pull_us * goal.groups + costs.give_us * goal.copies
    )
    write_mb_s = goal.rate * (goal.size + costs.overhead) / 1e6
    sent_mb_s = write_mb_s * (goal.groups + goal.copies)
    kept_tb = write_mb_s * goal.days * DAY_S / 1e6
    by = {
        "CPU": goal.rate * master_us / 1e6 / CORE_USED,
        "network": max(write_mb_s, sent_mb_s) / (costs.nic_mb_s * LINK_USED),
        "disk speed": write_mb_s / (costs.disk_mb_s * LINK_USED),
        "disk room": kept_tb / (costs.disk_tb * costs.disk_full),
    }
    in_route = min(goal.spread or math.inf, masters_for(by))
    route_us = costs.route_us + costs.route_broker_us * (in_route - 1)
    clients = goal.clients or max(10, round(goal.rate / 1000))
    return Need(
        by=by, copies=goal.copies, write_mb_s=write_mb_s, sent_mb_s=sent_mb_s, stored_tb=kept_tb * (1 + goal.copies),
        name_server_cores=clients * goal.topics / ROUTES_S * route_us / 1e6,
        spark_cores=goal.rate * costs.read_us / 1e6, broker_mib=costs.broker_mib,
    )  # fmt: skip


def number(value: float) -> str:
    """Three digits at most behind the point, none of a large one."""
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.3g}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=float, required=True, metavar="N", help="messages a second, all topics together")
    parser.add_argument("--size", type=int, default=KIB, metavar="B", help="bytes of a body (default: 1024)")
    parser.add_argument("--copies", type=int, default=1, metavar="N", help="slaves of each master (default: 1)")
    parser.add_argument("--groups", type=int, default=2, metavar="N", help="groups that read each message (default: 2)")
    parser.add_argument("--days", type=float, default=3.0, metavar="N", help="days that messages are kept (default: 3)")
    parser.add_argument("--clients", type=int, default=0, metavar="N", help="processes (default: rate / 1000, from 10)")
    parser.add_argument("--topics", type=int, default=50, metavar="N", help="topics of a client (default: 50)")
    parser.add_argument("--spread", type=int, default=16, metavar="N", help="brokers of a topic; 0: all (default: 16)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="COST=N",
        help="a cost that you measured, repeatable: " + ", ".join(one.name for one in dataclasses.fields(Costs)),
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    names = {one.name for one in dataclasses.fields(Goal)}
    goal = Goal(**{name: value for name, value in vars(arguments).items() if name in names})
    if (
        goal.rate <= 0
        or min(goal.size, goal.copies, goal.groups, goal.days, goal.clients, goal.topics, goal.spread) < 0
    ):
        raise ConfigError("rates and numbers can't be negative, and the rate can't be 0")
    for name, figure in work_out(goal, given_costs(arguments.set)).rows:
        print(f"{name:30}{figure}")
    return 0


def given_costs(words: Sequence[str]) -> Costs:
    """Raises ConfigError for what is no cost or no number."""
    known = {one.name for one in dataclasses.fields(Costs)}
    found: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise ConfigError(f"--set {word}: write COST=NUMBER, such as send_us=4.5") from None
        if name not in known or not found[name] > 0:
            raise ConfigError(f"--set {word}: a cost is one of {', '.join(sorted(known))}, and above 0")
    return dataclasses.replace(Costs(), **found)  # type: ignore[arg-type]
