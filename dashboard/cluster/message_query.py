"""What a person typed to find messages, understood: an id, a key, a place, conditions, words. Pure, but for
the files of schemas that bodies are decoded by.

    order-17                     one word: an id or a key, and if it is neither, a word in the body
    q3 @ 1204                    a place in this topic; "orders q3 @ 1204" in another, "broker-a q3 @ 1204" at a broker
    tag:paid  key:order-17       the tag, one of the keys
    name=value                   a property; name="" is without it
    $.customer.id=7  $.sum>100   inside a body of JSON, MessagePack or of a schema (bodies/json_path.py)
    hello "two words"            words in the body, upper or lower case

Conditions and words that stand together must all hold. Quotes keep a text together and take its meaning away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dashboard.language.sentences import gettext, joined
from dashboard.messages.bodies.body_view import document_of
from dashboard.messages.bodies.json_path import JsonCondition, read_path
from gantrymq.message.model import MessageExt

QUERY_CHARS_MAX = 500
CONDITIONS_MAX = 16
# "orders broker-a q3 @ 1204": what stands before the queue is told apart by who asks, who knows the brokers.
_PLACE = re.compile(r"(?:(?P<before>\S+(?:\s+\S+)?)\s+)?q(?P<queue>\d{1,9})\s*@\s*(?P<offset>\d{1,18})")
_PART = re.compile(
    r'(?P<path>\$[.\[](?:"[^"]*"|[^\s"=<>!])*)(?:(?P<order>!=|<=|>=|=|<|>)(?:"(?P<limit>[^"]*)"|(?P<bare>\S*)))?(?=\s|$)|'
    r'"(?P<phrase>[^"]*)"|(?P<name>[^\s:="]+)(?P<sign>[:=])(?:"(?P<quoted>[^"]*)"|(?P<value>\S*))|(?P<word>\S+)'
)


@dataclass(frozen=True, slots=True)
class Place:
    """A queue's offset. before: the words in front, a topic or a broker or both."""

    before: tuple[str, ...]
    queue_id: int
    queue_offset: int


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """What the text asks for; empty when it asks for nothing. single: one plain word and nothing else."""

    text: str = ""
    place: Place | None = None
    single: str = ""
    tags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    json: tuple[JsonCondition, ...] = ()
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.place or self.tags or self.keys or self.properties or self.words or self.json or self.problem)

    @property
    def indexed(self) -> str:
        """What the brokers' index can be asked for: the single word, or a key that is the only condition."""
        others = len(self.keys) != 1 or self.tags or self.properties or self.words or self.json
        return self.single or ("" if others else self.keys[0])

    @property
    def conditions(self) -> str:
        """The conditions as a phrase, "tag paid, “hello” in the body"."""
        told: list[str] = []
        told += [gettext("tag %(tag)s") % {"tag": tag} for tag in self.tags]
        told += [gettext("key %(key)s") % {"key": key} for key in self.keys]
        told += [
            f"{name} = {value}" if value else (gettext("no %(name)s") % {"name": name})
            for name, value in self.properties
        ]
        told += [one.text for one in self.json]
        told += [(gettext("“%(word)s” in the body") % {"word": word}) for word in self.words]
        return joined(told)

    def matches(self, message: MessageExt) -> bool:
        """Whether all conditions hold for the message."""
        if any(message.tags != tag for tag in self.tags) or any(key not in message.keys for key in self.keys):
            return False
        if any(message.properties.get(name, "") != value for name, value in self.properties):
            return False
        if self.json:
            document = document_of(bytes(message.body), message.topic)
            if not all(one.holds(document) for one in self.json):
                return False
        if not self.words:
            return True
        body = bytes(message.body).decode("utf-8", "replace").casefold()
        return all(word.casefold() in body for word in self.words)


def understand(text: str) -> MessageQuery:
    """The query of a text. What can't be understood has a `problem`, a sentence for people."""
    text = text.strip()
    if len(text) > QUERY_CHARS_MAX:
        return MessageQuery(
            text[:QUERY_CHARS_MAX],
            problem=(gettext("At most %(query_chars_max)s characters.") % {"query_chars_max": QUERY_CHARS_MAX}),
        )
    place = _PLACE.fullmatch(text)
    if place is not None:
        before = tuple((place["before"] or "").split())
        return MessageQuery(text, place=Place(before, int(place["queue"]), int(place["offset"])))
    tags: list[str] = []
    keys: list[str] = []
    properties: list[tuple[str, str]] = []
    words: list[str] = []
    inside: list[JsonCondition] = []
    parts = list(_PART.finditer(text))
    for part in parts:
        name, sign, value = part["name"], part["sign"], part["quoted"] if part["quoted"] is not None else part["value"]
        steps = read_path(part["path"]) if part["path"] else None
        if steps is not None:
            limit = part["limit"] if part["limit"] is not None else part["bare"]
            inside.append(JsonCondition(part[0], steps, part["order"] or "", limit or ""))
        elif sign == "=":
            properties.append((name, value))
        elif sign == ":" and name in ("tag", "key", "id") and value:
            (tags if name == "tag" else keys).append(value)
        elif part["phrase"] != "":
            words.append(part["phrase"] or part[0])
    if len(parts) > CONDITIONS_MAX:
        return MessageQuery(
            text,
            problem=(gettext("At most %(conditions_max)s conditions at a time.") % {"conditions_max": CONDITIONS_MAX}),
        )
    single = words[0] if len(parts) == 1 and words and parts[0]["phrase"] is None else ""
    return MessageQuery(text, None, single, tuple(tags), tuple(keys), tuple(properties), tuple(words), tuple(inside))
