"""How long a run will take: what the last ones on this machine took, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from django.utils.translation import gettext

from appliance.reports.runs import RunFolder
from dashboard.cluster import units

RUNS = 5  # the newest that have a result


def steps_of(folders: Sequence[RunFolder]) -> list[Mapping[str, float]]:
    """The seconds of each step of these runs. Blocks: reads files."""
    found = [status for folder in folders if (status := folder.status()) is not None]
    return [status.seconds for status in found if status.seconds]


def in_steps(runs: Sequence[Mapping[str, float]]) -> str:
    """The median of each step, as a sentence; empty when no run is known. Runs that follow soon need no start."""
    if not runs:
        return ""
    names = {
        "session": gettext("starting Spark"),
        "ingest": gettext("reading the logs"),
        "report": gettext("computing the report"),
    }
    taken = {name: [steps[name] for steps in runs if name in steps] for name in names}
    steps = ", ".join(f"{names[name]} {units.duration(median(each))}" for name, each in taken.items() if each)
    return gettext("The last runs on this machine took: %(steps)s.") % {"steps": steps}
