"""One message by its id alone, which is an address: /messages/ID, on the page and in REST.

An offset id names its broker and place. A unique id is the client's, and the brokers' index is asked by topic: traces
say which topic it was, else the topics are asked that were written to last, a bounded number of them.
"""

from __future__ import annotations

from django.utils.translation import gettext

from dashboard.cluster import browse
from dashboard.cluster.errors import MessageNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.topic_requests import LISTING_SHARED_S
from dashboard.cluster.values import TopicSummary
from dashboard.limits.names import current
from dashboard.messages.trace_search import topic_of
from gantrymq.message.model import MessageExt

TOPICS_MAX = 64  # that are asked for an id of which no trace tells the topic
_KINDS = ("normal", "dead letter", "retry")  # where a message has its id from its sender comes first


async def message_by_id(gateway: Gateway, msg_id: str, topic: str = "") -> MessageExt:
    """The message; of copies with one id, such as retries, the one that was stored first. Raises GatewayError."""
    for message in await gateway.messages.at_offset_id(msg_id):
        return message
    known = topic or await topic_of(gateway, msg_id)
    asked = [known] if topic or (known and current().allows(known)) else []  # one that is named may be refused
    found, failures = await gateway.messages.with_unique_id(asked, msg_id) if asked else ([], [])
    others: list[str] = []
    if not found and not topic:
        others = [name for name in await _written_last(gateway) if name != known][:TOPICS_MAX]
        found, failures = await gateway.messages.with_unique_id(others, msg_id)
    if found:
        return max(found, key=browse.newest_first)
    if failures:
        raise MessageNotFound(
            gettext("No broker that answers has it. %(broker)s has not answered: %(reason)s.")
            % {"broker": failures[0].what, "reason": failures[0].reason}
        )
    raise MessageNotFound(
        gettext("No message with this id in %(topic)s.") % {"topic": topic}
        if topic
        else gettext(
            "No message with this id in the %(count)s topics that were written to last. If it is in another topic, "
            "search there."
        )
        % {"count": len(others)}
    )


async def _written_last(gateway: Gateway) -> list[str]:
    """The topics, those with messages from senders first, each kind by its last write."""
    rows = (await gateway.topics.list(max_age_s=LISTING_SHARED_S)).rows
    wanted = [row for row in rows if row.kind in _KINDS]
    return [row.name for row in sorted(wanted, key=lambda row: (_KINDS.index(row.kind), -last_write_ms(row)))]


def last_write_ms(row: TopicSummary) -> int:
    """When the topic was written to last, 0 if that is not known."""
    return row.metrics.value.last_write_ms if row.metrics is not None and row.metrics.value is not None else 0
