"""A message as the Python that would send it again with the SDK."""

from __future__ import annotations

from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt

BODY_BYTES_MAX = 16 * 1024
_NOT_FREE = frozenset(
    {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)} | names.DELAYING
)


def python_of(message: MessageExt) -> str | None:
    """The program's text; None for a body too large to stand in one."""
    body = bytes(message.body)
    if len(body) > BODY_BYTES_MAX:
        return None
    free = {name: value for name, value in message.properties.items() if name not in _NOT_FREE}
    arguments = [repr(message.topic), repr(body)]
    arguments += [f"tags={message.tags!r}"] if message.tags else []
    arguments += [f"keys={message.keys!r}"] if message.keys else []
    arguments += [f"properties={free!r}"] if free else []
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"from gantrymq import Message\n\nmessage = Message(\n{lines})\n"
