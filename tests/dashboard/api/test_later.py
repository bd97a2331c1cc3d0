"""REST is loaded by the first request that may need it, and by nothing before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.source_files import ROOT

# A web process from its start to its first request for REST; prints what was loaded when.
SCRIPT = """
import asyncio, json, sys, dashboard.asgi
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import resolve, reverse
from dashboard.api.later import OPERATIONS, RestLoader
from dashboard.management.commands import up

async def answer(request):
    loaded.append(OPERATIONS in sys.modules)
    return HttpResponse(resolve(request.path).view_name)

def asked(path):
    return asyncio.run(RestLoader(answer)(RequestFactory().get(path))).content.decode()

up._services(lambda is_another: None)
loaded = []
pages = [reverse("definitions"), reverse("api-docs")]
names = [asked("/login"), "pydantic" in sys.modules, asked("/topics"), asked("/api/v1/topics")]
print(json.dumps([pages, names, loaded, reverse("api:list_topics")]))
"""


def test_neither_the_start_nor_the_log_in_loads_rest_but_the_first_request_behind_it(tmp_path: Path) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "dashboard.settings", "GANTRY_DATA": str(tmp_path)}
    command = [sys.executable, "-c", "import django; django.setup()\n" + SCRIPT]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [
        ["/definitions", "/api/v1/docs"],
        ["login", False, "topics", "api:list_topics"],
        [False, True, True],
        "/api/v1/topics",
    ]
