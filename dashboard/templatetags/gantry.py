"""What templates need beyond Django: metrics that know their age, bars, units, icons, changed queries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.conf import settings
from django.template import Context
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from dashboard.alerts.forms import rule_initial
from dashboard.alerts.kinds import name_in_words
from dashboard.audit.words import action_in_words
from dashboard.clients.short_ids import in_two, shortened
from dashboard.cluster import units
from dashboard.forms.rest_bodies import BODIES, values_of
from dashboard.forms.shell_commands import admin_line, curl_line, rest_line, topic_body, topic_words
from dashboard.language.told import told_in_words
from dashboard.latency.figures import bound_in_words
from dashboard.status.metric import Metric, Metrics
from dashboard.status.words import disk_in_words, in_words

register = template.Library()

for _name in ("count", "rate", "size", "percent", "mark", "duration", "milliseconds"):
    register.filter(_name, getattr(units, _name))
register.filter("bound_in_words", bound_in_words)


@register.simple_tag
def live(metrics: Metrics | None, *key: object) -> SafeString:
    """A metric as a span that the script keeps up to date; its class says live, stale or unknown."""
    name = "".join(str(part) for part in key)
    now = metrics.now if metrics else 0.0
    metric = (metrics.values.get(name) if metrics else None) or Metric(units.UNKNOWN, None, gettext("not known yet"))
    at = "" if metric.at is None else f"{metric.at:.1f}"
    state = metric.state(now)
    is_whole = state == "live" and not metric.text.startswith(units.AT_LEAST)
    title = format_html(' title="{}"', metric.why) if metric.why and not is_whole else SafeString("")
    return format_html(
        '<span class="v is-{}" data-live="{}" data-at="{}"{}>{}</span>', state, name, at, title, metric.text
    )


@register.inclusion_tag("_bar.html")
def bar(metrics: Metrics | None, label: str, *key: object, marks: str | Sequence[float] = ()) -> dict[str, Any]:
    """A bar against its limit. `marks`: ratios at which ticks are drawn; a template writes its own as "0.5,0.8"."""
    name = "".join(str(part) for part in key)
    ratio = metrics.bars.get(name) if metrics else None
    ratios = marks.split(",") if isinstance(marks, str) else marks  # "" stands for what is not there
    ticks = sorted(float(mark) for mark in ratios if mark)
    return {
        "key": name,
        "label": label,
        "ratio": ratio,
        "width": f"{min(max(ratio or 0.0, 0.0), 1.0) * 100:.2f}",
        "marks": [f"{tick * 100:g}" for tick in ticks],
        "marks_text": ",".join(f"{tick:g}" for tick in ticks),
        "level": bar_level(ratio, ticks),
        "percent": units.percent(ratio),
    }


@register.inclusion_tag("_commands.html", takes_context=True)
def commands(
    context: Context, method: str, api: str, body: Mapping[str, Any] | None, *words: str | Sequence[str]
) -> dict[str, Any]:
    """What a form does as lines for a shell: `gantry admin`, and curl to the address `api`.

    words: of a verb that asks the brokers, where a list stands for its words; without them the verb is the one that
    makes this call of REST.
    """
    url = context["request"].build_absolute_uri(api)
    all_words = [one for word in words for one in (word if isinstance(word, list) else [str(word)])]
    line = (
        admin_line(settings.APPLIANCE.namesrv_address, *all_words) if all_words else rest_line(url, body, method=method)
    )
    return {"lines": [*filter(None, [line]), curl_line(url, body, method=method)]}


@register.simple_tag
def body(**fields: Any) -> dict[str, Any]:
    """A body for `commands`, without what is empty: `{% body role="reader" as same %}`."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


@register.filter(name="topic_body")
def topic_form_body(form: Any) -> dict[str, Any]:
    """A topic's form as REST's body."""
    return topic_body({field.name: field.value() for field in form})


register.filter("topic_words", topic_words)
register.filter("in_words", in_words)
register.filter("disk_in_words", disk_in_words)
register.filter("action_in_words", action_in_words)
register.filter("told_in_words", told_in_words)
register.filter("rule_name", name_in_words)


@register.filter
def rest_body(form: Any, what: str) -> dict[str, Any]:
    """A form as REST's body of its kind: see dashboard/forms/rest_bodies.py."""
    return BODIES[what](values_of(form))


@register.filter
def with_kind(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """A channel's body with its kind."""
    return {"name": body["name"], "kind": str(kind)} | body


@register.filter
def prefixes_body(person: Any) -> dict[str, Any]:
    """An account's limit as REST's body."""
    return {"prefixes": list(person.prefixes)}


@register.filter
def rule_rest_body(rule: Any) -> dict[str, Any]:
    """A rule that is there, with nothing but its switch turned."""
    return BODIES["rule"](rule_initial(rule, ()) | {"is_on": not rule.is_on})


def bar_level(ratio: float | None, marks: Sequence[float]) -> str:
    """How far along its marks a bar is: unknown, ok, warn (past the first), bad (past the second); plain without."""
    if ratio is None:
        return "unknown"
    if not marks:
        return "plain"
    passed = sum(1 for mark in marks if ratio > mark)
    return ("ok", "warn", "bad")[min(passed, 2)]


_ICONS = {
    "overview": '<path d="M3 13a9 9 0 0 1 18 0M12 13l4-4M5.5 18.5h13"/>',
    "topics": '<path d="M4 6h16M4 12h16M4 18h10"/>',
    "brokers": '<rect x="4" y="4" width="16" height="6.5" rx="1.5"/>'
    '<rect x="4" y="13.5" width="16" height="6.5" rx="1.5"/><path d="M7.5 7.25h.01M7.5 16.75h.01"/>',
    "clients": '<rect x="3" y="5" width="11" height="8" rx="1.5"/><path d="M6 17h5M8.5 13v4"/>'
    '<circle cx="18.5" cy="15.5" r="2.5"/><path d="M14 9h4.5v4"/>',
    "connect": '<path d="M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0V8ZM12 17v4"/>',
    "menu": '<path d="M4 7h16M4 12h16M4 17h16"/>',
    "groups": '<circle cx="9" cy="8" r="3.2"/><path d="M3 19c0-3.3 2.7-5.5 6-5.5s6 2.2 6 5.5M15.5 5.4a3 3 0 0 1 0 5.5'
    'M17.5 14c2.1.7 3.5 2.5 3.5 5"/>',
    "dead": '<rect x="3" y="6" width="18" height="13" rx="2"/>'
    '<path d="m3.5 7.5 8.5 6.5 8.5-6.5M8.5 16.5l-4.5 2M15.5 16.5l4.5 2"/>',
    "bell": '<path d="M6 16V11a6 6 0 0 1 12 0v5l1.5 2H4.5L6 16ZM10 20.5h4"/>',
    "definitions": '<path d="M6 3h8l4 4v14H6zM14 3v4h4M9.5 13.5 8 15l1.5 1.5M14.5 13.5 16 15l-1.5 1.5"/>',
    "reports": '<path d="M5 20V10M12 20V4M19 20v-7"/>',
    "audit": '<path d="M6 3.5h9l4 4V20.5H6zM15 3.5v4h4M9 12h7M9 16h5"/>',
    "shield": '<path d="M12 3.5 5 6v5.5c0 4.3 2.9 7.6 7 9 4.1-1.4 7-4.7 7-9V6z"/>',
    "people": '<circle cx="12" cy="8" r="3.5"/><path d="M5 20c0-4 3.1-6.5 7-6.5s7 2.5 7 6.5"/>',
    "tokens": '<circle cx="8" cy="15" r="4"/><path d="m11 12 8-8M16 7l3 3"/>',
    "api": '<path d="m8 7-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14"/>',
    "plus": '<path d="M12 5v14M5 12h14"/>',
    "route": '<circle cx="5" cy="6" r="2"/><circle cx="19" cy="18" r="2"/>'
    '<path d="M7 6h7a3 3 0 0 1 0 6h-4a3 3 0 0 0 0 6h7"/>',
    "search": '<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>',
    "copy": '<rect x="8" y="8" width="12" height="12" rx="2"/>'
    '<path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2"/>',
    "check": '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
    "warn": '<path d="M12 4 2.8 20h18.4L12 4ZM12 10v4.5M12 17.2v.3"/>',
    "theme": '<circle cx="12" cy="12" r="8"/><path d="M12 4v16a8 8 0 0 0 0-16Z" fill="currentColor" stroke="none"/>',
    "logout": '<path d="M14 4h4a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-4M10 8l-4 4 4 4M6 12h10"/>',
    "send": '<path d="m4 12 16-7-6 15-3-6-7-2Z"/>',
    "chevron": '<path d="m9 6 6 6-6 6"/>',
    "trash": '<path d="M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13"/>',
    "box": '<path d="M4 8l8-4 8 4v8l-8 4-8-4V8ZM4 8l8 4 8-4M12 12v8"/>',
    "settings": '<path d="M4 8h9M17 8h3M4 16h3M11 16h9"/><circle cx="15" cy="8" r="2"/><circle cx="9" cy="16" r="2"/>',
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """A line icon of our own, decorative: the word stands beside it or in an aria-label."""
    return mark_safe(
        f'<svg class="icon" viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" '
        f'stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{_ICONS[name]}</svg>'
    )


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: object) -> str:
    """This page's query with some values changed; None and "" take a value out. "?" alone when nothing is left."""
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    return "?" + parameters.urlencode()


@register.simple_tag
def client_id(whole: str, ids: Sequence[str]) -> SafeString:
    """A client's id, with what it shares with all of `ids` (sorted) paler."""
    return format_html('<span class="shared">{}</span>{}', *in_two(whole, ids))


@register.simple_tag
def short_client_id(whole: str, ids: Sequence[str]) -> SafeString:
    """As much of it as tells it from the others of `ids` (sorted); the whole one when pointed at."""
    return format_html('<span title="{}">{}</span>', whole, shortened(whole, ids))


@register.filter
def ago(at_ms: float | None, now: float) -> str:
    """A stored timestamp (ms) as distance from `now` (seconds); never is an em dash."""
    return units.UNKNOWN if not at_ms or at_ms <= 0 else units.ago(at_ms / 1000, now)


@register.filter
def plural(number: int | None, word: str) -> str:
    """3|plural:"queue" → "3 queues". The texts in the catalog are "%(count)s queue" and "%(count)s queues"."""
    one = f"%(count)s {word}"
    return ngettext(one, f"{one}s", 2 if number is None else number) % {"count": units.count(number)}


@register.filter
def with_code(text: str) -> SafeString:
    """A sentence of the shell's for a page: what stands in backticks as code."""
    return mark_safe(re.sub("`([^`]+)`", r"<code>\1</code>", escape(text)))


@register.filter
def may(principal: Any, permission: str) -> bool:
    """Whether the one who is logged in may do something; hides what would be refused."""
    return principal is not None and principal.may(permission)


@register.filter
def pairs(text: str) -> list[list[str]]:
    """ "a:A,b:B" → [[a, A], [b, B]], for loops over what a template itself names; A and B are translated."""
    parts = [part.split(":", 1) for part in text.split(",")]
    return [[key, gettext(label)] for key, label in parts]


@register.filter
def split(text: str) -> list[str]:
    """ "a,b" → [a, b], for loops over what a template itself names."""
    return text.split(",")


@register.filter
def breakable(name: str) -> SafeString:
    """A name or path that a narrow column breaks after its dots and slashes."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in re.split("(?<=[./])", name)))


@register.filter
def at(table: Mapping[str, Any], key: str) -> Any:
    """table[key], None when it is not there."""
    return table.get(key)


@register.filter
def as_json(value: Any) -> SafeString:
    """A value for a <script type="application/json">; what could end the element is escaped."""
    text = json.dumps(value, separators=(",", ":"))
    return mark_safe(text.translate({ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}))
