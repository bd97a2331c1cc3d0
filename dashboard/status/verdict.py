"""Is it fine? Checks over one snapshot, and the one plain sentence that answers. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from django.urls import reverse

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import again, gettext
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.check import NAME_SERVER, Check, Harm, Level, page_of
from dashboard.status.disk_checks import disk_problems
from dashboard.status.failover import failover_problems
from dashboard.status.group_checks import dead_letter_problems, group_problems
from dashboard.status.process_checks import process_problems
from dashboard.status.service_checks import service_problems
from dashboard.status.silence_checks import processes_of_silent, silent_problems
from dashboard.status.slave_checks import without_master

OF_RULES_MAX = 20  # alerts of rules with a line of their own; the sentence counts all
LANE_FULL = 0.8  # of the capacity
HEAD_WAIT_MS = 200.0  # RocketMQ refuses sends that waited longer (waitTimeMillsInSendQueue)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, and the problems behind it, worst first: what checks find, and alerts that only rules opened.

    level, link: of the first problem, whose title the sentence begins with; mark and sentence never disagree.
    worst: of any problem, a forecast or an acknowledged one too, for programs that wait for a level.
    """

    sentence: str
    problems: tuple[Check, ...]
    is_known: bool = True

    @property
    def level(self) -> Level:
        return self.problems[0].level if self.problems else self._without_problems

    @property
    def worst(self) -> Level:
        return max((problem.level for problem in self.problems), default=self._without_problems)

    @property
    def _without_problems(self) -> Level:
        return Level.GOOD if self.is_known else Level.WARN

    @property
    def link(self) -> str:
        """Where the sentence leads."""
        return self.problems[0].link if self.problems else ""


def judge(snapshot: Snapshot | None) -> Verdict:
    """Everything that checks and rules say about a snapshot."""
    if snapshot is None:
        return Verdict(gettext("Reading the cluster for the first time …"), (), is_known=False)
    of_checks = checked(snapshot)
    of_rules = _only_rules_say(snapshot, of_checks)
    if not of_checks and not of_rules:
        return Verdict(_all_good(snapshot), ())
    listed = [alert.again() for alert in of_rules[:OF_RULES_MAX]]
    problems = sorted(of_checks + listed, key=lambda problem: problem.rank)
    return Verdict(_with_more(problems[0].title, len(of_checks) + len(of_rules)), tuple(problems))


def checked(snapshot: Snapshot) -> list[Check]:
    """What the checks find, worst first. Each leads somewhere: to the brokers and processes, where it has no page."""
    brokers, known = reverse("brokers"), snapshot.acknowledged
    found = (
        replace(problem, link=problem.link or brokers, is_acknowledged=problem.identity in known)
        for problem in _problems(snapshot)
    )
    return sorted(found, key=lambda problem: problem.rank)


def _only_rules_say(snapshot: Snapshot, of_checks: Sequence[Check]) -> list[Check]:
    """Open alerts of rules about what no check names, worst first."""
    told = {(rule, subject) for check in of_checks for rule in check.rules for subject in check.about}
    alerts = (alert for alert in snapshot.alerts_of_rules if not told.issuperset(product(alert.rules, alert.about)))
    return sorted(alerts, key=lambda alert: alert.rank)


def _with_more(worst: str, count: int) -> str:
    return gettext("%(worst)s, and %(count)s more") % {"worst": worst, "count": count - 1} if count > 1 else worst


def _all_good(snapshot: Snapshot) -> str:
    in_rate, _, _ = snapshot.known_sum("in_rate")
    if in_rate is None:
        return gettext("All good, rates are known in a second")
    if in_rate == 0 and snapshot.stored is not None and snapshot.stored.messages == 0:
        return gettext("All good, waiting for the first message")
    return gettext("All good, %(rate)s msg/s in") % {"rate": units.rate(in_rate)}


def _problems(snapshot: Snapshot) -> list[Check]:
    found = [problem.again() for problem in snapshot.problems]
    if snapshot.namesrv_why:
        found.append(
            Check(
                Level.BAD,
                gettext("The name server does not answer"),
                again(snapshot.namesrv_why),
                gettext("New clients find no broker. Check its process on the page Brokers, and its log."),
                rules=(RuleKind.BROKER_SILENT,),
                about=(NAME_SERVER,),
                harm=Harm.STOPS,
            )
        )
    elif not snapshot.brokers:
        found.append(
            Check(
                Level.BAD,
                gettext("No broker is registered"),
                gettext("name server %(address)s answers and lists none") % {"address": snapshot.namesrv},
                gettext("A starting broker registers within seconds. If it does not, check its process and log."),
                harm=Harm.STOPS,
            )
        )
    found += silent_problems(snapshot)
    for broker in snapshot.brokers:
        page = page_of("broker", broker.name, "brokers")
        found += [replace(check, link=check.link or page) for check in _broker_problems(broker, snapshot)]
    found += disk_problems(snapshot)
    found += without_master(snapshot)
    found += failover_problems(snapshot.failovers, snapshot.at)
    told = processes_of_silent(snapshot)
    for process in snapshot.processes:
        found += [] if process in told else process_problems(process)
    found += group_problems(snapshot.groups, snapshot.at)
    found += dead_letter_problems(snapshot.stored)
    return found


def _broker_problems(broker: BrokerState, snapshot: Snapshot) -> list[Check]:
    """Of one that answers."""
    facts = broker.facts
    if facts is None or broker.is_silent(snapshot.at):
        return []
    return _store_problems(facts) + _lane_problems(facts) + service_problems(facts)


def _store_problems(facts: BrokerFacts) -> list[Check]:
    if not facts.store_trouble:
        return []
    return [
        Check(
            Level.BAD,
            gettext("%(broker)s has trouble with its disk") % {"broker": facts.name},
            facts.store_trouble,
            gettext(
                "Acknowledged messages are kept; clients send rejected ones again, or elsewhere. "
                "Check the disk and the broker's log."
            ),
            harm=Harm.STOPS,
        )
    ]


def _lane_problems(facts: BrokerFacts) -> list[Check]:
    found = []
    for lane in facts.lanes:
        is_full = bool(lane.capacity and lane.size is not None and lane.size >= lane.capacity * LANE_FULL)
        is_slow = lane.name == "send" and lane.head_wait_ms is not None and lane.head_wait_ms >= HEAD_WAIT_MS
        if is_full or is_slow:
            found.append(
                Check(
                    Level.WARN,
                    (
                        gettext("%(broker)s is busy: the %(lane)s lane is full")
                        if is_full
                        else gettext("%(broker)s is busy: the %(lane)s lane is slow")
                    )
                    % {"broker": facts.name, "lane": lane.name},
                    gettext("%(size)s of %(capacity)s waiting, the first for %(time)s")
                    % {
                        "size": units.count(lane.size),
                        "capacity": units.count(lane.capacity),
                        "time": units.milliseconds(lane.head_wait_ms),
                    },
                    gettext("Clients are asked to retry. A slow disk or too little CPU is the usual cause."),
                )
            )
    return found
