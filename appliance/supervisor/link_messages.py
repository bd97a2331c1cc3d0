"""The protocol of guardian and web process: one JSON object a line, over a socket pair that the web process inherits.

From the web process (`do`):

    beat                                                        heartbeat, twice a second
    serving                                                     its port is open
    spawn    name stage command environment log_path           start this, unless it runs already
    signal   name pid number is_for_session                     send that process a signal, or its whole session
    finish   code                                               everything is stopped: end with this exit code

From the guardian (`event`):

    hello     guardian web_starts has_served endings children  the first message; children: as in `spawned`
    spawned   name pid …                                        the process, see Spawned.facts
    not_spawned name reason
    progress  name pid percent                                  progress of its store's recovery
    ready     name pid line                                     the text after READY
    ended     name pid exit_code
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MESSAGE_BYTES_MAX = 1 << 20


def encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Decode one line. Raises ValueError for anything but a JSON object."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"a message is an object, not {type(message).__name__}")
    return message
