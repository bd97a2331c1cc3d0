"""A broker's settings: what it runs with, what may change, and a look at the difference before it does."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.brokers.changes import changes_of, newest_by_key
from dashboard.brokers.tabs import Tabs
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.settings_table import BrokerSetting, read_changes
from dashboard.http.error_pages import gateway_error
from dashboard.language.sentences import gettext, ngettext

logger = logging.getLogger(__name__)

FIELD, WAS = "set.", "was."  # what the form calls a setting's new value, and the one it was shown with


@requires(Permission.CONFIG_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def config(request: HttpRequest, name: str) -> HttpResponse:
    """GET: the settings. POST: the difference; with do=save it is put in force."""
    try:
        broker = await gateway().brokers.get(name)
        rows = await gateway().brokers.settings(broker)
        changes_before = newest_by_key(await changes_of(name))
        tabs = Tabs(name, broker.name, "config")
        context: dict[str, Any] = {"broker": broker, "tabs": tabs, "changed_by": changes_before}
        if request.method != "POST":
            return render(request, "brokers/config.html", context | _table(request, rows, {}, {}))
        wanted = {key.removeprefix(FIELD): str(text) for key, text in request.POST.items() if key.startswith(FIELD)}
        if reverted := request.POST.get("revert", ""):
            wanted = {row.key: row.default for row in rows if row.key == reverted}
        changes, problems = read_changes(rows, wanted)
        problems |= _overtaken(request, rows, {change.key for change in changes})
        if problems:
            context |= {"lead": gettext("Nothing was changed.")}
            return render(request, "brokers/config.html", context | _table(request, rows, wanted, problems), status=422)
        if not changes or request.POST.get("do") != "save":
            note_nothing(request)
        if not changes:
            notes.success(request, gettext("Nothing differs, so nothing was changed."))
            return redirect("broker-config", name)
        if request.POST.get("do") != "save":
            values = {change.key: change.after for change in changes}
            context |= {
                "same_body": {"changes": values},
                "same_words": [f"{key}={text}" for key, text in values.items()],
            }
            return render(request, "brokers/config_diff.html", context | {"changes": changes})
        remark = await gateway().brokers.change_settings(broker, changes)
        logger.info(
            "broker settings changed",
            extra={
                "event": "broker_config_changed", "broker": name, "username": str(request.user),
                "changes": {change.key: [change.before, change.after] for change in changes}, "remark": remark,
            },
        )  # fmt: skip
        changed = {change.key: {"before": change.before, "after": change.after} for change in changes}
        note(request, "broker settings changed", name, changed)
    except GatewayError as exc:
        return gateway_error(request, exc)
    count = ngettext("%(count)s setting changed", "%(count)s settings changed", len(changes)) % {"count": len(changes)}
    if remark:
        said = gettext("%(settings)s; the broker's remark: %(remark)s") % {"settings": count, "remark": remark}
    else:
        said = gettext("%(settings)s and saved in its file.") % {"settings": count}
    notes.success(request, said)
    return redirect("broker-config", name)


def _overtaken(request: HttpRequest, rows: Sequence[BrokerSetting], keys: set[str]) -> dict[str, str]:
    """Settings that changed elsewhere since this form was shown."""
    shown = {key.removeprefix(WAS): text for key, text in request.POST.items() if key.startswith(WAS)}
    return {
        row.key: gettext("It has since been changed to %(value)s.") % {"value": row.value}
        for row in rows
        if row.key in keys and shown.get(row.key, row.value) != row.value
    }


def _table(
    request: HttpRequest, rows: Sequence[BrokerSetting], wanted: dict[str, str], problems: dict[str, str]
) -> dict[str, Any]:
    part = request.GET.get("q", "").strip()
    words = part.lower()
    differing = request.GET.get("show") == "differing"
    seen = [
        row
        for row in rows
        if row.key in problems
        or ((words in row.key.lower() or words in row.doc.lower()) and (not differing or not row.is_default))
    ]
    known = {row.key for row in rows}
    return {
        "q": part,
        "differing": differing,
        "count_differing": sum(not row.is_default for row in rows),
        "changeable": [(row, wanted.get(row.key, row.value), problems.get(row.key)) for row in seen if not row.refusal],
        "fixed": [(row, problems.get(row.key)) for row in seen if row.refusal],
        "odd": sorted(key for key in problems if key not in known)[:5],
    }
