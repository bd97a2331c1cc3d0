"""The accounts with which clients sign at the brokers. A change is a document of definitions: its preview says what
differs, and the same page does it.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.cluster.gateway import gateway
from dashboard.definitions.document import as_text
from dashboard.definitions.reading import Found, as_document, found
from dashboard.definitions.schemas import Definitions

NEW = Definitions.model_validate(
    {
        "accounts": [
            {
                "access_key": "orders-app",
                "admin": False,
                "default_topic_perm": "DENY",
                "default_group_perm": "DENY",
                "topic_perms": {"orders": "PUB|SUB"},
                "group_perms": {"orders-readers": "SUB"},
            }
        ]
    }
)


async def accounts(request: HttpRequest) -> HttpResponse:
    there = await found(gateway(), ("accounts",))
    rows = [
        (key, item, key in there.partial, as_text(as_document(Found({"accounts": {key: item}}))))
        for key, item in sorted(there.items.get("accounts", {}).items())
    ]
    context = {"rows": rows, "why_not": there.why_not.get("accounts"), "new": as_text(NEW)}
    return render(request, "definitions/accounts.html", context)
