"""Checks of the appliance's processes: what the supervisor says of those that do not run. Pure."""

from __future__ import annotations

from django.utils.translation import gettext_noop

from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined, ngettext
from dashboard.status.check import Check, Harm, Level
from dashboard.status.processes import ProcessFacts

PASSING = ("waiting", "starting", "restarting", "stopping")
# What a process is, as sentences say it; its state's own name when it is none of these.
STATES = {
    "crash loop": gettext_noop("Process %(name)s is in a crash loop"),
    "waiting": gettext_noop("Process %(name)s is waiting"),
    "starting": gettext_noop("Process %(name)s is starting"),
    "restarting": gettext_noop("Process %(name)s is restarting"),
    "stopping": gettext_noop("Process %(name)s is stopping"),
    "failed": gettext_noop("Process %(name)s has failed"),
}


def process_problems(process: ProcessFacts) -> list[Check]:
    count = units.count(process.restarts)
    restarts = ngettext("%(count)s restart", "%(count)s restarts", process.restarts or 0) % {"count": count}
    if process.note:
        return [
            Check(
                Level.WARN,
                gettext("Process %(name)s was started again") % {"name": process.name},
                joined([process.note, restarts], "; "),
                gettext("Brokers went on serving. guardian.log and gantry.log in the data folder say why."),
            )
        ]
    if process.is_suspended:
        return [
            Check(
                Level.BAD,
                gettext("Process %(name)s is stopped by a signal") % {"name": process.name},
                gettext("pid %(pid)s is suspended (SIGSTOP, or a debugger)") % {"pid": process.pid},
                gettext(
                    "It serves no request until it is continued: kill -CONT %(pid)s. With "
                    "worker_hang_s (10 s) it is killed and started again after that time."
                )
                % {"pid": process.pid},
                harm=Harm.STOPS,
            )
        ]
    if process.state in ("running", "done", "stopped"):
        return []
    if process.state == "held":
        return [
            Check(
                Level.WARN,
                gettext("%(name)s is drained and stopped") % {"name": process.name},
                "",
                gettext("gantry admin undrain %(name)s starts it again.") % {"name": process.name},
            )
        ]
    is_passing = process.state in PASSING or process.role == "report"
    restarted = joined([restarts, f"pid {process.pid}" if process.pid else ""])
    return [
        Check(
            Level.WARN if is_passing else Level.BAD,
            state_in_words(process),
            restarted,
            gettext("Its log in the data folder says why."),
            harm=Harm.SLOWS if process.role == "report" else Harm.STOPS,
        )
    ]


def state_in_words(process: ProcessFacts) -> str:
    """As a sentence."""
    text = gettext(STATES[process.state]) if process.state in STATES else gettext("Process %(name)s is %(state)s")
    return text % {"name": process.name, "state": process.state}
