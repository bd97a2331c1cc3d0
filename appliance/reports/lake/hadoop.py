"""Where Hadoop's Java classes are, for its native library, which Arrow reads HDFS through.

Spark brings the client's classes with it (hadoop-client-api, hadoop-client-runtime), so nothing of Hadoop but the
library itself must be installed. A `CLASSPATH` that is set already stays: some clusters want classes of their own.
"""

from __future__ import annotations

import os
from pathlib import Path

NEEDED = ("hadoop-client-", "commons-lang3-", "commons-logging-", "slf4j-", "jcl-over-slf4j-", "log4j-")


def have_hadoops_classes() -> None:
    """Set CLASSPATH for this process, which its JVM reads when it starts: Hadoop's settings, then Spark's jars."""
    from pyspark.find_spark_home import _find_spark_home  # tasks of Spark write to other places without it

    if os.environ.get("CLASSPATH"):
        return
    jars = sorted(str(jar) for jar in (Path(_find_spark_home()) / "jars").glob("*.jar") if jar.name.startswith(NEEDED))
    settings = filter(None, [os.environ.get("HADOOP_CONF_DIR")])  # name nodes behind one name, Kerberos
    os.environ["CLASSPATH"] = os.pathsep.join([*settings, *jars])
