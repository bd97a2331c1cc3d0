"""The OpenAPI document and its page (Swagger UI, from our own origin). Behind the log-in like everything else."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.accounts.access import Permission, requires


@requires(Permission.TOPICS_READ, token=True)
@require_safe
async def openapi(request: HttpRequest) -> HttpResponse:
    from dashboard.api import api

    return JsonResponse(api.get_openapi_schema(path_prefix="/api/v1/"))


@requires(Permission.ACCOUNT)
@require_safe
async def docs(request: HttpRequest) -> HttpResponse:
    response = render(request, "api/docs.html")
    # Swagger UI sets style attributes in the markup it builds.
    response.csp_extra = {"style-src": "'unsafe-inline'"}  # type: ignore[attr-defined]
    return response
