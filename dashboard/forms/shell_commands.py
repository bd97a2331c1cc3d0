"""What a page's button does, as lines for a shell: `gantry admin …`, and curl to the REST address of the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from appliance.cli.admin.rest.client import API
from appliance.cli.admin.rest.table import words_of


def admin_line(namesrv: str, *words: str) -> str:
    """The line of `gantry admin`; every word reaches it as it is, whatever is in it."""
    return shlex.join(["gantry", "admin", *words, "-n", namesrv])


def rest_line(url: str, body: Mapping[str, Any] | None, *, method: str) -> str:
    """The line of `gantry admin` for a call of REST; empty where no verb makes it."""
    parts = urlsplit(url)
    words = words_of(method, parts.path.removeprefix(API), body) if not parts.query else []
    return shlex.join(["gantry", "admin", *words, "--dashboard", f"{parts.scheme}://{parts.netloc}"]) if words else ""


def curl_line(url: str, body: Mapping[str, Any] | None = None, *, method: str = "POST") -> str:
    """The call of REST; the token is a variable of the shell, so that it stands in no page and no history."""
    line = f'curl -X {method} -H "Authorization: Bearer $GANTRY_TOKEN" {shlex.quote(url)}'
    if body is None:
        return line
    return f"{line} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"


def topic_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """What REST takes for the main fields of a topic's form, as it is filled in; a name only where the form has one."""
    queues = str(values.get("queues") or "8")
    body: dict[str, Any] = {"write_queues": int(queues) if queues.isdecimal() else queues, "perm": values.get("perm")}
    return {"name": values["name"] or "orders"} | body if "name" in values else body


def topic_words(body: Mapping[str, Any]) -> list[str]:
    """The same as options of `gantry admin topics create` and `set`."""
    perm = {"read-write": "rw", "read": "r", "write": "w"}.get(str(body["perm"]), "rw")
    return ["-q", str(body["write_queues"]), "--perm", perm]


def reset_words(group: str, wanted: Mapping[str, Any]) -> list[str]:
    """`gantry admin` words for a reset of offsets as the form has it; none where only the dashboard can do it."""
    topics = [str(topic) for topic in wanted["topics"]]
    match wanted["to"]:
        case "end" | "begin" as place:
            return ["reset", group, *topics, "--to", place]
        case "time":
            return ["reset", group, *topics, "--to", _when(str(wanted["at"]))]
        case "offset":
            return ["reset", group, *topics, "--offset", str(wanted["offset"])]
        case "copy" if len(topics) == 1:
            return ["clone", str(wanted["source"]), group, *topics]
    return []


def put_back_words(group: str, chosen: Mapping[str, str]) -> list[str]:
    """`gantry admin` words that put the chosen letters back; none where the command knows no such choice."""
    if set(chosen) - {"since", "until"}:
        return []
    options = [(option, chosen[key]) for key, option in (("since", "--from"), ("until", "--to")) if key in chosen]
    return ["dead-letters", "resend", group, *(word for option, text in options for word in (option, _when(text)))]


def _when(text: str) -> str:
    """A time of a form, which is UTC if it names no zone, as the command takes it; "2 h" is that long ago."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text.replace(" ", "")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
