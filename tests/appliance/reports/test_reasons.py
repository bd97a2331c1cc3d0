"""Why a report failed, in one line of what Python or Spark said."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from appliance.reports.worker_jobs import reason_of

CAUSE = "libgfortran.so.5: cannot open shared object file: No such file or directory"
WITHOUT_LIBRARY = f"""
import sys

class Loader:
    def find_spec(self, name, *_):
        if name == "numpy._core._multiarray_umath":
            raise ImportError({CAUSE!r})

sys.meta_path.insert(0, Loader())
try:
    import numpy
except ImportError as failure:
    sys.stdout.write(str(failure))
    raise
"""


def test_numpys_own_cause_is_shown_and_not_the_heading_of_its_advice() -> None:
    pytest.importorskip("numpy")
    ran = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARY], capture_output=True, text=True, check=False)
    assert "IMPORTANT: PLEASE READ THIS" in ran.stdout and "IMPORTANT: PLEASE READ THIS" in ran.stderr
    from_worker = RuntimeError(f"An exception was thrown from the Python worker:\n{ran.stderr}")
    for failure in (ImportError(ran.stdout), from_worker):
        assert reason_of(failure) == f"numpy can't be imported: {CAUSE}"
