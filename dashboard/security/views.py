"""What is open to whom, and what to do about it. For administrators."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.access.permissions import Permission, requires
from dashboard.cluster.gateway import gateway
from dashboard.security.review import review


@requires(Permission.USERS_WRITE)
async def security(request: HttpRequest) -> HttpResponse:
    found = await review(gateway(), settings.APPLIANCE)
    return render(request, "security/security.html", {"review": found, "settings": settings.APPLIANCE})
