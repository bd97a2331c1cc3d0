"""What the palette (Ctrl-K) goes to, as JSON: pages, actions, topics, groups, clients, brokers, reports, messages.

The message of an offset id is asked for at once. Of another id or key no broker knows the topic: traces say where it
was sent, and else the box of the topic that was written to last looks for it.
"""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy

from appliance.reports.catalogue import REPORTS
from dashboard.access.permissions import Permission, Principal, requires
from dashboard.clients.listing import client_book
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.topic_requests import LISTING_SHARED_S
from dashboard.groups.group_cache import group_book
from dashboard.messages.by_id import last_write_ms
from dashboard.messages.trace_events import TraceWish
from dashboard.messages.trace_search import look
from dashboard.web.context import navigation_of

SHOWN_MAX = 8  # of each kind
TEXT_CHARS_MAX = 255
KEY_TOPICS_MAX = 5  # whose box is offered for a word that is nothing else
_WORD = re.compile(r"\S{3,}")

_ACTIONS = (
    (gettext_lazy("Create a topic"), "topics", "?new=1", Permission.TOPICS_WRITE),
    (gettext_lazy("Create an alert rule"), "alert-rule-new", "", Permission.ALARMS_WRITE),
    (gettext_lazy("Mute alerts"), "alert-mute", "", Permission.ALARMS_WRITE),
    (gettext_lazy("Change the name servers' key-value table"), "name-server-entries", "", Permission.CONFIG_WRITE),
    (gettext_lazy("Invite a user"), "people", "", Permission.USERS_WRITE),
    (gettext_lazy("Create an API token"), "tokens", "", Permission.ACCOUNT),
    (gettext_lazy("Change your password"), "password", "", Permission.ACCOUNT),
    (gettext_lazy("Read about the REST API"), "api-docs", "", Permission.ACCOUNT),
    (gettext_lazy("Read the documentation"), "docs", "", Permission.ACCOUNT),
)


@requires(Permission.ACCOUNT)
async def find(request: HttpRequest) -> HttpResponse:
    """Those whose name has the text `q`; names that begin with it come first."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    text = request.GET.get("q", "").strip()[:TEXT_CHARS_MAX]
    pages = [
        _item(gettext("Page"), str(page.label), page.href)
        for section in navigation_of(principal)
        for entry in section.entries
        for page in entry.tabs or (entry,)
    ]
    actions = [
        _item(gettext("Action"), str(label), reverse(name) + query)
        for label, name, query, needs in _ACTIONS
        if principal.may(needs)
    ]
    found = _matching(pages, text, len(pages)) + _matching(actions, text, len(actions))
    trouble = ""
    if text:
        try:
            found = await _in_cluster(principal, text) + found
            if not found and principal.may(Permission.MESSAGES_READ) and _WORD.fullmatch(text):
                found = await _by_key(text)
        except GatewayError as exc:
            trouble = str(exc)
    return JsonResponse({"found": found, "trouble": trouble})


async def _in_cluster(principal: Principal, text: str) -> list[dict[str, str]]:
    """Raises GatewayError."""
    found: list[dict[str, str]] = []
    if principal.may(Permission.MESSAGES_READ):
        for message in await gateway().messages.at_offset_id(text):
            place = f"{message.broker_name}.{message.queue_id}.{message.queue_offset}"
            label = f"{message.topic} q{message.queue_id} @ {message.queue_offset}"
            found.append(_item(gettext("Message"), label, reverse("topic-message", args=[message.topic, place])))
    if principal.may(Permission.TOPICS_READ):
        rows = (await gateway().topics.list(max_age_s=LISTING_SHARED_S)).rows
        topics = [
            _item(gettext("Topic"), row.name, reverse("topic", args=[row.name])) for row in rows if row.kind == "normal"
        ]
        found += _matching(topics, text, SHOWN_MAX)
    if principal.may(Permission.GROUPS_READ):
        names = (await group_book.listing(gateway())).settings
        groups = [
            _item(gettext("Group"), name, reverse("group", args=[name])) for name in names if not is_system_group(name)
        ]
        found += _matching(groups, text, SHOWN_MAX)
    if principal.may(Permission.CLUSTER_READ):
        found += await _machines(text)
    if principal.may(Permission.REPORTS_READ):
        index = reverse("reports:index")
        found += _matching([_item(gettext("Report"), one.title, index) for one in REPORTS.values()], text, SHOWN_MAX)
    return found


async def _machines(text: str) -> list[dict[str, str]]:
    """Brokers by name or address, clients by id, host or group."""
    brokers = [
        _item(gettext("Broker"), f"{broker.name} {broker.address}", reverse("broker", args=[broker.name]))
        for broker in (await gateway().brokers.list()).brokers
    ]
    clients = [
        _item(gettext("Client"), one.client_id, f"{reverse('clients')}?{urlencode({'q': one.client_id})}")
        for one in (await client_book.listing(gateway())).named
    ]
    return _matching(brokers, text, SHOWN_MAX) + _matching(clients, text, SHOWN_MAX)


async def _by_key(text: str) -> list[dict[str, str]]:
    """Where a message with this id or key may be."""
    step = await look(gateway(), TraceWish(text), TimeSpan())
    told = dict.fromkeys(event.topic for event in step.events if event.topic)
    rows = (await gateway().topics.list(max_age_s=LISTING_SHARED_S)).rows
    newest = sorted((row for row in rows if row.kind == "normal"), key=last_write_ms, reverse=True)
    places = list(told) or [row.name for row in newest[:KEY_TOPICS_MAX]]
    query = urlencode({"q": text})
    found = [
        _item(
            gettext("Key"),
            gettext("%(key)s in %(topic)s") % {"key": text, "topic": topic},
            f"{reverse('topic', args=[topic])}?{query}",
        )
        for topic in places
    ]
    return found + ([_item(gettext("Traces"), text, f"{reverse('traces')}?{query}")] if told else [])


def _item(kind: str, label: str, href: str) -> dict[str, str]:
    return {"kind": kind, "label": label, "href": href}


def _matching(items: list[dict[str, Any]], text: str, limit: int) -> list[dict[str, str]]:
    wanted = text.lower()
    fits = [item for item in items if wanted in item["label"].lower()]
    return sorted(fits, key=lambda item: not item["label"].lower().startswith(wanted))[:limit]
