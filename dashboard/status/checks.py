"""Is it fine? Checks over one snapshot, and the one plain sentence that answers. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.cluster import units
from dashboard.status.board import FRESH_S, SILENT_S, BrokerFacts, BrokerState, Snapshot
from dashboard.status.group_checks import dead_letter_problems, group_problems
from dashboard.status.problems import Level, Problem
from dashboard.status.processes import ProcessFacts
from dashboard.status.service_checks import service_problems
from dashboard.status.slave_checks import what_goes_on, without_master

LANE_FULL = 0.8  # of the capacity
FULL_SOON_S, FULL_NOW_S = 6 * 3600.0, 3600.0  # by the growth of the last half hour
FORECAST_AFTER_S = 600.0  # what a minute brought is no forecast for hours
HEAD_WAIT_MS = 200.0  # RocketMQ refuses sends that waited longer (waitTimeMillsInSendQueue)
STATES = {"crash loop": "in a crash loop"}  # of processes, where a sentence needs another word


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, and the problems behind it, worst first."""

    level: Level
    sentence: str
    problems: tuple[Problem, ...]
    link: str = ""  # where the sentence leads


def judge(snapshot: Snapshot | None) -> Verdict:
    """Everything the checks say about a snapshot."""
    if snapshot is None:
        return Verdict(Level.WARN, "Looking at the cluster for the first time …", ())
    problems = sorted(_problems(snapshot), key=lambda problem: -problem.level)
    if not problems:
        return Verdict(Level.GOOD, f"All good, {_traffic(snapshot)}", ())
    worst = problems[0]
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return Verdict(worst.level, f"{worst.title}{more}", tuple(problems), worst.link)


def _traffic(snapshot: Snapshot) -> str:
    in_rate, _, _ = snapshot.known_sum("in_rate")
    if in_rate is None:
        return "rates are known in a second"
    if in_rate == 0 and snapshot.stored is not None and snapshot.stored.messages == 0:
        return "waiting for the first message"
    return f"{units.rate(in_rate)} msg/s in"


def _problems(snapshot: Snapshot) -> list[Problem]:
    found = [*snapshot.problems]
    if snapshot.namesrv_why:
        found.append(
            Problem(
                Level.BAD,
                "The name server does not answer",
                snapshot.namesrv_why,
                "Clients that start now find no broker. Look at its process below and at its log.",
            )
        )
    elif not snapshot.brokers:
        found.append(
            Problem(
                Level.BAD,
                "No broker is registered",
                f"name server {snapshot.namesrv} answers and lists none",
                "A starting broker registers within seconds. If it does not, look at its process and log.",
            )
        )
    for broker in snapshot.brokers:
        found += _broker_problems(broker, snapshot)
    found += without_master(snapshot)
    for process in snapshot.processes:
        found += process_problems(process)
    found += group_problems(snapshot.groups, snapshot.at)
    found += dead_letter_problems(snapshot.stored)
    return found


def _broker_problems(broker: BrokerState, snapshot: Snapshot) -> list[Problem]:
    facts, now = broker.facts, snapshot.at
    if broker.why is not None and (facts is None or now - facts.at > SILENT_S):
        is_short = facts is not None and now - facts.at <= FRESH_S  # one answer came late: worth a look, not an alarm
        since = f" for {units.duration(int(now - broker.failing_since))}" if broker.failing_since else ""
        title = f"Slave {broker.name} does not answer" if broker.is_slave else f"{broker.name} does not answer"
        return [
            Problem(
                Level.WARN if is_short or broker.is_slave else Level.BAD,
                f"{title}{since}",
                f"{broker.address}: {broker.why}",
                f"{what_goes_on(broker, snapshot)} When its process ends, or answers nothing for a while "
                "(worker_hang_s), it is started again; its log says why.",
                name=title,
            )
        ]
    if facts is None:
        return []
    return _disk_problems(facts) + _store_problems(facts) + _lane_problems(facts) + service_problems(facts)


def _disk_problems(facts: BrokerFacts) -> list[Problem]:
    """By the broker's own marks, and as it compares: at a mark nothing happens yet."""
    ratio, marks = facts.disk_ratio, facts.disk_marks
    if ratio is None or ratio <= min(marks):
        return _forecast(facts)
    used = f"{facts.name}: {units.percent(ratio)} used. {facts.disk_text}{_whose_bytes(facts)}".strip()
    name = _disk_of(facts)
    if ratio > marks.force and facts.disk_filled_by_others:
        return [_filled_by_others(facts, used)]
    if ratio > marks.refuse:
        action = f"Writes are refused above {units.mark(marks.refuse)}. Free space or add a disk."
        return [Problem(Level.BAD, "The disk is full", used, action, name)]
    if ratio > marks.force:
        action = f"Above {units.mark(marks.force)} the oldest messages go early. Free space."
        return [Problem(Level.BAD, "The disk is nearly full", used, action, name)]
    action = f"Above {units.mark(marks.clean)} expired messages are cleaned at once."
    return [Problem(Level.WARN, "The disk is filling", used, action, name)]


def _forecast(facts: BrokerFacts) -> list[Problem]:
    """A disk that is roomy yet, and will not be for long. A young broker has seen too little to alarm anyone."""
    full_in_s = facts.disk_full_in_s
    has_seen_enough = facts.boot_ms is not None and facts.at - facts.boot_ms / 1000 >= FORECAST_AFTER_S
    if full_in_s is None or full_in_s > FULL_SOON_S or not has_seen_enough:
        return []
    return [
        Problem(
            Level.BAD if full_in_s <= FULL_NOW_S else Level.WARN,
            f"The disk is filling: full in {units.duration(round(full_in_s))}",
            f"{facts.name}: {units.percent(facts.disk_ratio)} used, {units.size(facts.disk_growth)} a second more. "
            f"{facts.disk_text}{_whose_bytes(facts)}".strip(),
            f"Writes are refused above {units.mark(facts.disk_marks.refuse)}. Free space, add a disk, or keep messages "
            "for a shorter time.",
            name=_disk_of(facts),
        )
    ]


def _store_problems(facts: BrokerFacts) -> list[Problem]:
    if not facts.store_trouble:
        return []
    return [
        Problem(
            Level.BAD,
            f"{facts.name} has trouble with its disk",
            facts.store_trouble,
            "What was acknowledged is kept; what is refused, clients send again or elsewhere. Look at the disk and at "
            "the broker's log.",
        )
    ]


def _whose_bytes(facts: BrokerFacts) -> str:
    if facts.disk_store_bytes is None or facts.disk_others_bytes is None:
        return ""
    return f" Messages hold {units.size(facts.disk_store_bytes)}, others {units.size(facts.disk_others_bytes)}."


def _disk_of(facts: BrokerFacts) -> str:
    """The problem's name: one for each broker's disk, however full it is and whatever filled it."""
    return f"disk of {facts.name}"


def _filled_by_others(facts: BrokerFacts, used: str) -> Problem:
    """No message is given up for bytes that are not the store's, so nothing but a person makes room."""
    refuse = facts.disk_marks.refuse
    is_full = facts.disk_ratio is not None and facts.disk_ratio > refuse
    return Problem(
        Level.BAD,
        "The disk is full: others filled it" if is_full else "The disk is nearly full: others fill it",
        used,
        f"Writes are refused above {units.mark(refuse)}; messages that have not expired stay. "
        "Free what other programs wrote, or add a disk.",
        name=_disk_of(facts),
    )


def _lane_problems(facts: BrokerFacts) -> list[Problem]:
    found = []
    for lane in facts.lanes:
        is_full = bool(lane.capacity and lane.size is not None and lane.size >= lane.capacity * LANE_FULL)
        is_slow = lane.name == "send" and lane.head_wait_ms is not None and lane.head_wait_ms >= HEAD_WAIT_MS
        if is_full or is_slow:
            found.append(
                Problem(
                    Level.WARN,
                    f"{facts.name} is busy: the {lane.name} lane is {'full' if is_full else 'slow'}",
                    f"{units.count(lane.size)} of {units.count(lane.capacity)} waiting, "
                    f"the first for {units.milliseconds(lane.head_wait_ms)}",
                    "Clients are told to try again. A slow disk or too little CPU is the usual cause.",
                )
            )
    return found


def process_problems(process: ProcessFacts) -> list[Problem]:
    if process.note:
        return [
            Problem(
                Level.WARN,
                f"Process {process.name} was started again",
                f"{process.note}; {units.count(process.restarts)} restarts",
                "Brokers served on. guardian.log and gantry.log in the data folder say why.",
            )
        ]
    if process.is_suspended:
        return [
            Problem(
                Level.BAD,
                f"Process {process.name} is stopped by a signal",
                f"pid {process.pid} is suspended (SIGSTOP, or a debugger)",
                f"It serves no request until it goes on: kill -CONT {process.pid}. Where worker_hang_s is set (10 s), "
                "it is killed and started again after that time.",
            )
        ]
    if process.state in ("running", "done", "stopped"):
        return []
    is_passing = process.state in ("waiting", "starting", "restarting", "stopping") or process.role == "report"
    level = Level.WARN if is_passing else Level.BAD
    return [
        Problem(
            level,
            f"Process {process.name} is {STATES.get(process.state, process.state)}",
            f"{units.count(process.restarts)} restarts" + (f", pid {process.pid}" if process.pid else ""),
            "Its log in the data folder says why.",
        )
    ]
