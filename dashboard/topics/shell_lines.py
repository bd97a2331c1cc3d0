"""A change of many topics as lines for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.forms.shell_commands import admin_line
from dashboard.topics.changes import TopicChange
from gantrymq.message.topic_attributes import RETENTION_MESSAGES, RETENTION_MS
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

WORDS = {PERM_READ | PERM_WRITE: "rw", PERM_READ: "r", PERM_WRITE: "w"}
REST_PERMS = {PERM_READ | PERM_WRITE: "read-write", PERM_READ: "read", PERM_WRITE: "write"}
PLACE = "TOPIC"  # stands for the loop's variable until the line is quoted


def admin_lines(
    namesrv: str, wanted: TopicChange, topics: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> list[str]:
    """`gantry admin` lines. groups: those that read the topics, each with its topics."""
    if wanted.what in ("skip", "again"):
        to = "end" if wanted.what == "skip" else "begin"
        return [
            admin_line(namesrv, "reset", group, *names, "--to", to, "--yes") for group, names in sorted(groups.items())
        ]
    line = admin_line(namesrv, "topics", *_words(wanted))
    quoted = " ".join(map(shlex.quote, topics))
    of_each = line.replace(PLACE, '"$topic"', 1)
    return [f"for topic in {quoted}; do {of_each}; done"]


def _words(wanted: TopicChange) -> list[str]:
    match wanted.what:
        case "access":
            return ["set", PLACE, "--perm", WORDS.get(wanted.perm or 0, "rw")]
        case "queues":
            return ["set", PLACE, "--read-queues", str(wanted.read_queues), "--write-queues", str(wanted.write_queues)]
        case "keep":
            kept = ((RETENTION_MS, wanted.retention_ms), (RETENTION_MESSAGES, wanted.retention_messages))
            words = [f"--attribute={name}={value}" if value else f"--attribute=-{name}" for name, value in kept]
            return ["set", PLACE, *words]
    return ["delete", PLACE, "--yes"]


def rest_body(wanted: TopicChange, topics: Sequence[str]) -> dict[str, Any]:
    """What REST takes for the same."""
    body: dict[str, Any] = {"what": wanted.what, "topics": list(topics)}
    match wanted.what:
        case "access":
            body["perm"] = REST_PERMS.get(wanted.perm or 0)
        case "queues":
            body |= {"read_queues": wanted.read_queues, "write_queues": wanted.write_queues}
        case "keep":
            kept = {"retention_ms": wanted.retention_ms, "retention_messages": wanted.retention_messages}
            body |= {name: value for name, value in kept.items() if value}
    return body
