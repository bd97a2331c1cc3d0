"""What a page's button does, as lines for a shell: `gantry admin …`, and curl to the REST address of the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def admin_line(namesrv: str, *words: str) -> str:
    """The line of `gantry admin`; every word reaches it as it is, whatever is in it."""
    return shlex.join(["gantry", "admin", *words, "-n", namesrv])


def curl_line(url: str, body: Mapping[str, Any] | None = None, *, method: str = "POST") -> str:
    """The call of REST; the token is a variable of the shell, so that it stands in no page and no history."""
    line = f'curl -X {method} -H "Authorization: Bearer $GANTRY_TOKEN" {shlex.quote(url)}'
    if body is None:
        return line
    return f"{line} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
