"""All these verbs by noun, and the way from a call of REST to the words that make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.cli.admin.command import Command
from appliance.cli.admin.rest import alarms, people, reports, runs
from appliance.cli.admin.rest.calls import Call

CALLS: dict[str, dict[str, Call]] = {**alarms.CALLS, **people.CALLS, **reports.CALLS, **runs.CALLS}
COMMANDS: dict[str, dict[str, Command]] = {
    noun: {verb: call.command for verb, call in calls.items()} for noun, calls in CALLS.items()
}


def words_of(method: str, path: str, body: Mapping[str, Any] | None) -> list[str]:
    """`gantry admin` words of a call to `path` below /api/v1; none where there is no verb for it."""
    for noun, calls in CALLS.items():
        for verb, call in calls.items():
            words = call.words(method, path, body)
            if words is not None:
                return [noun, *([verb] if verb else []), *words]
    return []
