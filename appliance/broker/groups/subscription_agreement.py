"""Members of one consumer group that subscribe differently: who they are, and how clients and operators learn of it.

Queues are shared among all members of a group, whatever each of them subscribes to; so where they differ, messages go
to members that don't want them, and are lost to those that do. RocketMQ takes the newest heartbeat and says nothing.
Here it is in the log, in the answer to 203, in the status (28), and told to the members themselves:

* every heartbeat is answered with the remark; our SDK logs it as a warning;
* a Java client logs the group's name of each notice (40), and does nothing with it: so a notice carries the text;
* a pull that is refused (24) because another member's subscription took the place of its own says so.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantrymq.message.topics import retry_topic
from gantrymq.remoting.admin_bodies import SubscriptionParty
from gantrymq.remoting.bodies import SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.broker.groups.consumer_groups import ConsumerGroupInfo

logger = logging.getLogger(__name__)

TELL_INTERVAL_S = 600.0  # while a group disagrees: between lines of the log, and between notices
CLIENTS_NAMED_MAX = 3
FINGERPRINTS_NAMED_MAX = 4
REMARK_CHARS_MAX = 600
TOPICS_KEPT_MAX = 64  # of one member; what is beyond counts for the comparison, but is not kept
EXPRESSION_CHARS_MAX = 200
MANY_FINGERPRINTS = 16  # with more of them a remark is put together once in REMARK_LIFE_S only
REMARK_LIFE_S = 1.0


@dataclass(frozen=True, slots=True)
class SubscriptionFingerprint:
    """What one member subscribes to: the message model, and topics with their expressions, sorted."""

    message_model: str
    expressions: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        text = "; ".join(f"{topic}: {expression}" for topic, expression in self.expressions) or "nothing"
        return text if self.message_model == "CLUSTERING" else f"{text} ({self.message_model})"


FingerprintCounter = Counter[SubscriptionFingerprint]


def fingerprint_of(
    group: str, message_model: str, subscriptions: Iterable[SubscriptionData]
) -> SubscriptionFingerprint:
    """Return what a heartbeat wants, in a form that is equal for subscriptions that mean the same."""
    own_retries = retry_topic(group)
    wanted = sorted((item.topic, _expression(item)) for item in subscriptions if item.topic != own_retries)
    kept = [(topic, _shortened(expression)) for topic, expression in wanted[:TOPICS_KEPT_MAX]]
    if len(wanted) > TOPICS_KEPT_MAX:
        rest = wanted[TOPICS_KEPT_MAX:]
        kept.append((f"{len(rest)} more topics", _digest(repr(rest))))
    return SubscriptionFingerprint(message_model, tuple(kept))


def _shortened(expression: str) -> str:
    if len(expression) <= EXPRESSION_CHARS_MAX:
        return expression
    return f"{expression[:EXPRESSION_CHARS_MAX]}… {_digest(expression)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def _expression(subscription: SubscriptionData) -> str:
    if subscription.expression_type not in ("", SubscriptionData.TAG):
        return f"{subscription.expression_type} {subscription.sub_string}"
    tags = sorted({tag.strip() for tag in subscription.sub_string.split("||")} - {""})
    return " || ".join(tags) if tags and tags != [SubscriptionData.SUB_ALL] else SubscriptionData.SUB_ALL


@dataclass(slots=True)
class _Told:
    """A group that disagrees: the remark, of which state and moment it is, when log and members were last told."""

    remark: str
    version: int
    made_at: float
    at: float = float("-inf")


class SubscriptionAgreement:
    """The groups whose members disagree. clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._disagreeing: dict[str, _Told] = {}

    @property
    def disagreeing_groups(self) -> list[str]:
        return sorted(self._disagreeing)

    def remark(self, group: str) -> str | None:
        """Return what a member of the group should know, None while all agree."""
        told = self._disagreeing.get(group)
        return told.remark if told is not None else None

    def look(self, info: ConsumerGroupInfo) -> None:
        """Look at a group that has just heard from a member, or lost one."""
        told = self._disagreeing.get(info.group)
        if len(info.fingerprints) < 2:
            if told is not None:
                self.forget(info.group)
                logger.info(
                    "members of a group agree again", extra={"event": "subscriptions_agree", "group": info.group}
                )
            return
        now = self._clock()
        if told is None:
            told = self._disagreeing[info.group] = _Told(_remark_of(info), info.fingerprints_version, now)
        elif told.version != info.fingerprints_version and (
            len(info.fingerprints) <= MANY_FINGERPRINTS or now - told.made_at >= REMARK_LIFE_S
        ):
            told.remark, told.version, told.made_at = _remark_of(info), info.fingerprints_version, now
        if now - told.at >= TELL_INTERVAL_S:
            told.at = now
            self._tell(info, told.remark)

    def forget(self, group: str) -> None:
        """The group has no members any more."""
        self._disagreeing.pop(group, None)

    def _tell(self, info: ConsumerGroupInfo, remark: str) -> None:
        logger.warning(
            "members of a group subscribe differently",
            extra={"event": "subscriptions_disagree", "group": info.group, "why": remark},
        )
        for member in info.channels.values():
            if member.language == "JAVA" and not member.connection.is_closing:
                fields = {"consumerGroup": f"{info.group} ({remark})"}
                member.connection.invoke_oneway(
                    RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields)
                )


def parties_of(info: ConsumerGroupInfo) -> list[SubscriptionParty]:
    """Return who wants what, the most numerous party first."""
    members: dict[SubscriptionFingerprint, list[str]] = {}
    for member in info.channels.values():
        if member.fingerprint is not None:
            members.setdefault(member.fingerprint, []).append(member.client_id)
    return [
        SubscriptionParty(sorted(clients), fingerprint.message_model, dict(fingerprint.expressions))
        for fingerprint, clients in sorted(members.items(), key=lambda item: (-len(item[1]), item[1][0]))
    ]


def _remark_of(info: ConsumerGroupInfo) -> str:
    most = dict(info.fingerprints.most_common(FINGERPRINTS_NAMED_MAX))
    clients: dict[SubscriptionFingerprint, list[str]] = {fingerprint: [] for fingerprint in most}
    for member in info.channels.values():
        named = clients.get(member.fingerprint) if member.fingerprint is not None else None
        if named is not None and len(named) < CLIENTS_NAMED_MAX:
            named.append(member.client_id)
    parts = [f"{_named(clients[fingerprint], count)} {fingerprint}" for fingerprint, count in most.items()]
    if len(info.fingerprints) > len(most):
        parts.append(f"and {len(info.fingerprints) - len(most)} more ways")
    text = f"members of consumer group {info.group} subscribe differently and miss messages: {' / '.join(parts)}"
    return text if len(text) <= REMARK_CHARS_MAX else f"{text[: REMARK_CHARS_MAX - 1]}…"


def _named(clients: list[str], count: int) -> str:
    others = f" and {count - len(clients)} more" if count > len(clients) else ""
    return f"{', '.join(clients)}{others} {'want' if count > 1 else 'wants'}"
