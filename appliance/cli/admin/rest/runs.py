"""`gantry admin pause`, `resume`, `move`, `topic-changes` and `dead-letter-runs`: what the web process does for long,
or for many, and goes on with when the shell is closed.
"""

from __future__ import annotations

from appliance.cli.admin.options import not_negative, positive
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.fields import Field
from appliance.cli.admin.rest.values import choice, integer

CONSUMING = "/groups/{group}/consuming"
LETTERS = "/dead-letters/{group}/runs"
WHAT = ("access", "queues", "keep", "skip", "again", "delete")
PLACES = ("end", "begin", "time", "offset", "shift", "copy", "undo")
PERMS = ("read-write", "read", "write")

CALLS = {
    "pause": {"": Call("hold a group back: its members get nothing, and it keeps its place", "PUT", CONSUMING,
                       fixed={"is_on": False})},
    "resume": {"": Call("let a group that was held back go on", "PUT", CONSUMING, fixed={"is_on": True})},
    "move": {
        "": Call(
            "move a group in several topics at once, so that it can be undone for a day", "POST",
            "/groups/{group}/resets",
            (
                Field("topics", "TOPIC", "one or more", kind="many", is_needed=True),
                Field("to", "--to", ", ".join(PLACES), choice(*PLACES), is_needed=True),
                Field("at", "--at", "for time: 2026-11-21T07:30:00Z, or 2h (so long ago)"),
                Field("offset", "--offset", "for offset: in every queue", not_negative),
                Field("by", "--by", "for shift: messages on in every queue, or back when below zero", integer),
                Field("source", "--source", "for copy: the group whose places are taken over"),
            ),
            columns=("topic", "is_done", "trouble", "skipped", "repeated"), loses=True,
        ),
    },
    "topic-changes": {
        "list": Call("changes of many topics, the newest first", "GET", "/topic-changes",
                     columns=("run", "what", "state", "started_at", "done", "failed")),
        "start": Call(
            "change or delete many topics", "POST", "/topic-changes",
            (
                Field("topics", "TOPIC", "one or more", kind="many", is_needed=True),
                Field("what", "--what", ", ".join(WHAT), choice(*WHAT), is_needed=True),
                Field("perm", "--perm", "for access: read-write, read or write", choice(*PERMS)),
                Field("read_queues", "--read-queues", "for queues: on each broker", positive),
                Field("write_queues", "--write-queues", "for queues: on each broker", positive),
                Field("retention_ms", "--keep-ms", "for keep: absent, as long as the brokers keep it", positive),
                Field("retention_messages", "--keep-messages", "for keep: of a queue", positive),
            ),
            loses=True,
        ),
        "show": Call("how far a run is", "GET", "/topic-changes/{run}"),
        "stop": Call("begin with no further topic", "POST", "/topic-changes/{run}/stop"),
    },
    "dead-letter-runs": {
        "list": Call(
            "runs that put a group's letters back", "GET", LETTERS,
            query=(
                Field("offset", "--skip", "leave out so many", not_negative),
                Field("limit", "--limit", "show at most so many (default: 50)", positive),
            ),
            rows="runs", columns=("run", "state", "sent", "failed", "unknown", "before", "wanted", "username",
                                  "started_at"),
        ),
        "start": Call(
            "put letters back, in a run of the dashboard", "POST", LETTERS,
            (
                Field("q", "--find", "which letters: a key, an id, name=value, words of the body"),
                Field("since", "--from", "2026-11-21 07:30, or 2 h for so long ago"),
                Field("until", "--to", "as --from"),
                Field("queue", "--queue", "only of this queue: broker-a.0"),
                Field("to", "--target", "group, which sends to it alone, or topic, where all groups get them",
                      choice("group", "topic")),
                Field("rate", "--rate", "letters a second", positive),
                Field("again", "--again", "also what was put back before", kind="switch", nothing="--not-again"),
                Field("older", "--older", "the place where it begins, as an earlier answer told it"),
                Field("wanted", "--wanted", "how many were counted", not_negative),
            ),
            loses=True,
        ),
        "show": Call("how far a run is", "GET", LETTERS + "/{run}"),
        "stop": Call("stop a run after the step that it is in", "POST", LETTERS + "/{run}/stop"),
        "go-on": Call("go on with a run that was stopped or failed", "POST", LETTERS + "/{run}/go-on"),
    },
}  # fmt: skip
