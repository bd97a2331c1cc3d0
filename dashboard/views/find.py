"""What the palette (Ctrl-K) goes to: pages, actions, topics, groups, and the message of an offset id, as JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from dashboard.accounts.access import Permission, Principal, requires
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.topics import LISTING_SHARED_S
from dashboard.groups.book import group_book
from dashboard.web.context import navigation_of

SHOWN_MAX = 8  # of each kind
TEXT_CHARS_MAX = 255

_ACTIONS = (
    (gettext_lazy("Create a topic"), "topics", "?new=1", Permission.TOPICS_WRITE),
    (gettext_lazy("Make an alarm rule"), "alarm-rule-new", "", Permission.ALARMS_WRITE),
    (gettext_lazy("Silence alarms"), "alarm-silence", "", Permission.ALARMS_WRITE),
    (gettext_lazy("Invite a person"), "people", "", Permission.USERS_WRITE),
    (gettext_lazy("Make an API token"), "tokens", "", Permission.ACCOUNT),
    (gettext_lazy("Change your password"), "password", "", Permission.ACCOUNT),
    (gettext_lazy("Read about the REST API"), "api-docs", "", Permission.ACCOUNT),
)


@requires(Permission.ACCOUNT)
@require_safe
async def find(request: HttpRequest) -> HttpResponse:
    """Those whose name has the text `q`; names that begin with it come first."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    text = request.GET.get("q", "").strip()[:TEXT_CHARS_MAX]
    pages = [_item(gettext("Page"), str(entry.label), entry.href) for entry in navigation_of(principal)]
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
    return found


def _item(kind: str, label: str, href: str) -> dict[str, str]:
    return {"kind": kind, "label": label, "href": href}


def _matching(items: list[dict[str, Any]], text: str, limit: int) -> list[dict[str, str]]:
    wanted = text.lower()
    fits = [item for item in items if wanted in item["label"].lower()]
    return sorted(fits, key=lambda item: not item["label"].lower().startswith(wanted))[:limit]
