"""Runs a function on Python workers of Spark, patiently; and says in a sentence why Spark could not.

A job is a DataFrame with a partition for each value; nothing here needs more than Spark Connect has. A worker may die
of reasons that pass: no memory, a machine so loaded that a worker does not start in time, an executor that goes. Spark
itself repeats a task only on a cluster. So a job is repeated, after longer and longer pauses; from the third try on,
each value has its own: what precedes a value that always fails is not lost.
"""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import BinaryType

from appliance.reports.errors import WorkersFailed

logger = logging.getLogger(__name__)

PAUSES_S = (1.0, 5.0, 20.0, 60.0)
TRIES_TOGETHER = 2

Value = TypeVar("Value")
Result = TypeVar("Result")

_PYTHON_ERROR = re.compile(r"^(?!SQLSTATE)(?:[A-Za-z_]\w*\.)*(\w+: .+|\w*(?:Error|Exception))$")
_NUMPYS_CAUSE = "Original error was: "  # behind a heading and advice


def run_on_workers(
    spark: SparkSession,
    function: Callable[[Value], Result],
    values: Sequence[Value],
    *,
    may_begin: Callable[[], bool] = lambda: True,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Result]:
    """Yield function(value) for each, in their order, each computed by a task.

    Where they have to be computed one by one, `may_begin` is asked before each; with its first no, this ends.
    Raises WorkersFailed for the first value whose tries are used up.
    """
    for pause_s in PAUSES_S[:TRIES_TOGETHER]:
        try:
            results = _job(spark, function, values)
        except (Py4JJavaError, PySparkException) as failure:
            _wait(failure, pause_s, sleep)
        else:
            yield from results
            return
    for value in itertools.takewhile(lambda _: may_begin(), values):
        yield _patiently(spark, function, value, sleep)


def _patiently(
    spark: SparkSession, function: Callable[[Value], Result], value: Value, sleep: Callable[[float], None]
) -> Result:
    for pause_s in (*PAUSES_S[TRIES_TOGETHER:], None):
        try:
            return _job(spark, function, [value])[0]
        except (Py4JJavaError, PySparkException) as failure:
            if pause_s is None:
                raise WorkersFailed(
                    f"Spark could not finish a task, {len(PAUSES_S) + 1} times; the last time: {reason_of(failure)}"
                ) from failure
            _wait(failure, pause_s, sleep)
    raise AssertionError("the last try returns or raises")


def _job(spark: SparkSession, function: Callable[[Value], Result], values: Sequence[Value]) -> list[Result]:
    """Run one job of Spark, a task for each value."""
    serializer = CPickleSerializer()  # Spark's own, which carries an RDD's results: only these tasks make them

    def work(number: int) -> bytes:
        return serializer.dumps(function(values[number]))

    numbers = spark.range(0, len(values), 1, len(values))  # a partition each
    told = functions.udf(work, BinaryType(), useArrow=False)  # PySpark's Arrow would need pandas
    results: dict[int, bytes] = dict(numbers.select("id", told("id")).collect())
    return [serializer.loads(results[number]) for number in range(len(values))]


def _wait(failure: Exception, pause_s: float, sleep: Callable[[float], None]) -> None:
    facts = {"event": "report_task_failed", "reason": reason_of(failure), "pause_s": pause_s}
    logger.warning("task failed", extra=facts)
    sleep(pause_s)


def reason_of(failure: Exception) -> str:
    """One line: what Python raised in a worker, else the innermost cause in Java, else what the failure says first."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    from_numpy = [line.removeprefix(_NUMPYS_CAUSE) for line in lines if line.startswith(_NUMPYS_CAUSE)]
    if from_numpy:
        return f"numpy can't be imported: {from_numpy[0]}"
    if "Traceback (most recent call last):" in str(failure):
        from_python = [
            match[1] for line in lines if not line.startswith("at ") and (match := _PYTHON_ERROR.match(line))
        ]
        if from_python:
            return from_python[-1]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if causes:
        return _without_package(causes[-1])
    from_java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    if from_java:
        return _without_package(from_java[0])
    return f"{type(failure).__name__}: {(lines or ['no reason given'])[0]}"


def _without_package(line: str) -> str:
    """java.io.IOException: no space -> IOException: no space."""
    name, colon, rest = line.partition(":")
    return name.rpartition(".")[2] + colon + rest
