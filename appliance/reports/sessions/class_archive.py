"""Spark's classes as the JVM wants them in memory, in a file: a session starts with half of the CPU time then.

Java calls it a dynamic archive of class data sharing. The JVM writes it when it ends, which takes some 20 s and 170 MB,
so only a session for whose end no reader waits does it: one that may be kept for several runs. The file belongs to one
Java, one Spark and one class path; Java checks that, and starts without the file when it does not fit. A class path
with a folder that is not empty never fits, so Spark's folder of settings is an empty one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Protocol

from appliance.reports.java import Java

WRITE, READ = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="
SWITCH = "GANTRY_TEST_CLASS_ARCHIVE"  # off: tests, which start one session, do not pay for the next one


class WithOptions(Protocol):
    @property
    def java_options(self) -> str: ...


class ClassArchive:
    """The archive for one Java and the Spark that is installed, in `folder`."""

    def __init__(self, folder: Path, java: Java) -> None:
        self.conf_folder = folder / "conf"
        self.conf_folder.mkdir(parents=True, exist_ok=True)
        spark = importlib.util.find_spec("pyspark")
        jars = Path(spark.origin).parent / "jars" if spark is not None and spark.origin else folder
        own = java.home.resolve() / "lib" / "server" / "classes.jsa"  # the Java's own archive, which this one extends
        self._is_possible = own.is_file() and jars.is_dir()
        facts = [str(own), str(jars)]
        if self._is_possible:
            facts += [str(path.stat().st_mtime_ns) for path in (own, jars)]
        self.path = folder / f"classes-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:16]}.jsa"

    def options(self, *, may_write: bool) -> str:
        """The options of a JVM: to use the archive, or to write it if there is none and the run may last."""
        if not self._is_possible:
            return ""
        if self.path.exists():
            return f"{READ}{self.path}"
        if not may_write or os.environ.get(SWITCH) == "off":
            return ""
        return f"{WRITE}{self._unfinished}"

    def is_wanted_in(self, settings: WithOptions) -> bool:
        """Whether a session with these settings writes the archive when it ends."""
        return WRITE in settings.java_options

    def keep(self) -> None:
        """Take what a session has written into use, and delete those of other versions. Nothing if it wrote none."""
        if not self._unfinished.exists():
            return
        self._unfinished.replace(self.path)
        for path in self.path.parent.glob("classes-*.jsa*"):
            if path != self.path:
                path.unlink(missing_ok=True)

    @property
    def _unfinished(self) -> Path:
        return self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
