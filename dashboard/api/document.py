"""The OpenAPI document, and the page that shows it. Behind the log-in like everything else."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from dashboard.access.permissions import Permission, requires
from dashboard.api.reference import operations


@requires(Permission.TOPICS_READ, token=True)
async def openapi(request: HttpRequest) -> HttpResponse:
    from dashboard.api.operations import api

    return JsonResponse(api.get_openapi_schema(path_prefix="/api/v1/"))


@requires(Permission.ACCOUNT)
async def docs(request: HttpRequest) -> HttpResponse:
    from dashboard.api.operations import api

    document = api.get_openapi_schema(path_prefix="/api/v1/")
    context = {"tags": operations(document), "about": document["info"]["description"], "host": request.get_host()}
    return render(request, "api/docs.html", context)
