"""In which Python Spark's tasks run, where it was not set.

PySpark takes `python3` of PATH. That is the system's when a program runs in a virtual environment that is not
activated, and the first query ends with ModuleNotFoundError in the middle of Java's stack.
"""

from __future__ import annotations

import os
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

VARIABLE = "PYSPARK_PYTHON"


def use_this_python() -> None:
    """Have tasks on this machine run in the program's own Python. Does nothing outside a driver, on a cluster, whose
    machines may have it elsewhere, and where PYSPARK_PYTHON names one."""
    session = SparkSession.getActiveSession()
    context = getattr(session, "sparkContext", None) if session is not None else None
    if (
        isinstance(context, SparkContext)
        and (context.master or "").startswith("local")
        and not os.environ.get(VARIABLE)
    ):
        context.pythonExec = sys.executable
