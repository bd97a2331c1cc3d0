"""The audit log: who changed what."""

from __future__ import annotations

from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django import forms
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from dashboard.access.permissions import Permission, requires
from dashboard.audit import chain
from dashboard.audit.export import FORMS, export_response
from dashboard.audit.listing import Asked, found, lines_of
from dashboard.forms.span import SpanForm
from dashboard.http.paging import page_of
from dashboard.models.audit import Result, Way

PAGE_ENTRIES = 50


class AuditForm(SpanForm):
    """Empty asks for all, but for the calls of the appliance itself."""

    q = forms.CharField(label=_("Find"), required=False, max_length=200, strip=True)
    who = forms.CharField(required=False, max_length=160, strip=True)
    way = forms.ChoiceField(required=False, choices=[("", _("Any source")), *Way.choices])
    result = forms.ChoiceField(required=False, choices=[("", _("Any result")), *Result.choices])
    own = forms.BooleanField(required=False)

    def asked(self) -> Asked:
        """Call it when the form is valid."""
        given = self.cleaned_data
        return Asked(
            text=given["q"],
            who=given["who"],
            way=given["way"],
            result=given["result"],
            since=_moment(given["since"]),
            until=_moment(given["until"]),
            with_own=given["own"],
        )


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


@requires(Permission.AUDIT_READ)
async def audit(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, who, way, result, since, until, own, page; with check=1 the chain is walked."""
    form = AuditForm(request.GET)
    asked = form.asked() if form.is_valid() else Asked()
    rows = found(asked)
    total = await rows.acount()
    page = page_of(request, range(total), PAGE_ENTRIES)
    start = page.rows[0] if page.rows else 0
    before = min(start, 2 * PAGE_ENTRIES)
    entries = [entry async for entry in rows[start - before : start + 2 * PAGE_ENTRIES]]
    context = {
        "form": form, "total": total,
        "lines": lines_of(entries, before, PAGE_ENTRIES),
        "page": page.number, "pages": page.pages, "is_narrowed": asked.is_narrowed, "kept_days": chain.KEPT.days,
    }  # fmt: skip
    if request.GET.get("check") == "1":
        context["chain"] = await sync_to_async(chain.check)()
    return render(request, "audit/audit.html", context, status=200 if form.is_valid() else 422)


@requires(Permission.AUDIT_READ)
async def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """What the list shows, all pages of it, as JSON lines or CSV."""
    asked = AuditForm(request.GET)
    if form not in FORMS or not asked.is_valid():
        raise Http404
    return export_response(asked.asked(), form)
