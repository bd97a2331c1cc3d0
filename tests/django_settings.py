"""The dashboard's settings for tests, with a data folder outside the checkout.

pytest-django reads the settings before any conftest is imported, so the folder is chosen by what is imported first.
"""

from __future__ import annotations

import tests.machine  # noqa: F401  # isort: skip
import dataclasses
import os

from dashboard.database.address import databases
from dashboard.settings import *  # noqa: F403
from dashboard.settings import APPLIANCE

INSTALLED_APPS += ["tests.suite"]  # noqa: F405  # its command `flush` stands before Django's
PASSWORD_HASHERS = ["tests.suite.quick_hashes.QuickHasher"]

# GANTRY_TEST_DATABASE_URL=postgresql://… runs the dashboard's tests on that server: by hand, as those with Apache are.
if url := os.environ.get("GANTRY_TEST_DATABASE_URL"):
    APPLIANCE = dataclasses.replace(APPLIANCE, database_url=url)
    DATABASES = databases(APPLIANCE)
    DATABASES["default"]["OPTIONS"].pop("pool")  # a test's threads are let go of without a word
