"""The dashboard's settings for tests, with a data folder outside the checkout.

pytest-django reads the settings before any conftest is imported, so the folder is chosen by what is imported first.
"""

from __future__ import annotations

import tests.machine  # noqa: F401  # isort: skip
from dashboard.settings import *  # noqa: F403
