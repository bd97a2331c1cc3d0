"""Programs that the tests run as processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

from tests.source_files import ROOT

FOLDER = Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
LIMIT_S = 120  # a hang is for ever; a busy machine is slow
