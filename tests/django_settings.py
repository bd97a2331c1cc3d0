"""The dashboard's settings for tests, with a data folder outside the checkout.

pytest-django reads the settings before any conftest is imported, so the folder is chosen here.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "GANTRY_DATA" not in os.environ:
    _data_folder = tempfile.mkdtemp(prefix="gantry-tests-")
    os.environ["GANTRY_DATA"] = _data_folder
    atexit.register(shutil.rmtree, _data_folder, ignore_errors=True)

from dashboard.settings import *  # noqa: F403
