"""GET /docs/…: the site of docs/, as deploy/site built it. Wheels, package and single file bring it along.

Every account may read it, and only after the log-in: no address of the dashboard is open that need not be (S10). The
pages load nothing from elsewhere and have their scripts in files, so the policy for content is that of every page.
"""

from __future__ import annotations

import functools
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from appliance.own_files import SITE
from dashboard.access.permissions import Permission, requires
from dashboard.http.error_pages import error_card
from dashboard.web.static_files import Shelf, answer

FIRST_PAGE = "index.html"


@functools.cache
def _shelf_of(site: Path) -> Shelf:
    def find(name: str) -> Path | None:
        path = (site / name).resolve()
        return path if path.is_relative_to(site.resolve()) and path.is_file() else None

    return Shelf(find, keep_bytes_max=0)  # seldom read, and several megabytes


@requires(Permission.ACCOUNT)
async def docs(request: HttpRequest, path: str = FIRST_PAGE) -> HttpResponse:
    try:
        return await answer(request, _shelf_of(SITE), path)
    except Http404:
        if SITE.is_dir():
            raise
        reason = gettext("The documentation has not been built in this checkout.")
        advice = gettext("Run deploy/site there, or read the files in docs/.")
        return error_card(request, 404, gettext("No documentation"), reason, advice)
