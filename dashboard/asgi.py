"""The ASGI application: pages and REST by Django, the live socket by Channels."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from django.core.asgi import get_asgi_application

pages = get_asgi_application()  # loads the models, which the imports below need

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import SessionMiddlewareStack  # noqa: E402

from dashboard.access.log_in_limit import LogInLimit  # noqa: E402
from dashboard.urls import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {"http": LogInLimit(pages), "websocket": SessionMiddlewareStack(URLRouter(websocket_urlpatterns))}
)
