"""A consumer group paused, let go on, deleted."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.forms.base import TypedNameForm
from dashboard.groups.changes import consuming_facts, dead_letters_of, delete_group, set_consuming
from dashboard.http.error_pages import gateway_error

logger = logging.getLogger(__name__)


@requires(Permission.GROUPS_WRITE)
@require_POST
async def consuming(request: HttpRequest, name: str) -> HttpResponse:
    """Off, or on again: the field `is_on` says which."""
    is_on = request.POST.get("is_on") == "true"
    try:
        changed = await set_consuming(gateway(), name, is_on=is_on)
    except GatewayError as exc:
        return gateway_error(request, exc)
    action = "group resumed" if is_on else "group paused"
    note(request, action, name, consuming_facts(changed, is_on=is_on))
    facts = {"event": "group_consuming", "group": name, "is_on": is_on, "username": str(request.user)}
    logger.info(action, extra=facts)
    notes.success(
        request,
        (gettext("%(name)s gets messages again.") % {"name": name})
        if is_on
        else (gettext("%(name)s is paused: new messages wait for it.") % {"name": name}),
    )
    return redirect("group", name)


@requires(Permission.GROUPS_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def delete(request: HttpRequest, name: str) -> HttpResponse:
    """What would be lost, in numbers; then the typed name."""
    try:
        detail = await gateway().groups.get(name)
        form = TypedNameForm(request.POST if request.method == "POST" else None, name=name)
        if request.method == "POST" and form.is_valid():
            brokers = await delete_group(gateway(), name)
            note(request, "group deleted", name, {"brokers": ", ".join(brokers)})
            facts = {"event": "group_deleted", "group": name, "username": str(request.user)}
            logger.info("group deleted", extra=facts)
            notes.success(request, (gettext("Group %(name)s deleted.") % {"name": name}))
            return redirect("groups")
        dead = await dead_letters_of(gateway(), name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context: dict[str, Any] = {"group": name, "detail": detail, "dead": dead, "form": form}
    return render(request, "groups/delete.html", context, status=422 if request.method == "POST" else 200)
