"""Classes of Java's programs as Java keeps them in memory: a start takes two thirds of the work with them.

Java makes such an archive of the classes that a process has loaded when it ends (Class Data Sharing). One serves all
programs whose class path begins with the same jars; one that does not fit is left aside by Java, and changes nothing.
Making one takes as long as some twenty starts save, so only jars that are started more often have one.
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from appliance.bench.apache_peer import POM, QUICK_START_FLAGS
from appliance.bench.maven import class_path, copied_jars
from tests.interop.build_cache import built, digest, tool

CLIENT_POM = Path(__file__).parent / "java" / "pom.xml"
OFTEN_STARTED = (CLIENT_POM, POM)
LOADER = Path(__file__).parent / "java_tools" / "LoadClasses.java"
FILE = "classes.jsa"
QUIET = "-Xlog:cds=off,cds+dynamic=off"  # it would tell on the programs' output what it can't take
USED = (
    "org/apache/rocketmq/",
    "com/alibaba/fastjson/",
    "org/slf4j/",
    "ch/qos/logback/",
    *(f"io/netty/{name}/" for name in ("bootstrap", "buffer", "channel", "util", "handler/ssl", "handler/timeout")),
)


@functools.cache
def archive_flags(pom: Path) -> tuple[str, ...]:
    """Flags of Java for a class path that begins with the jars of `pom`; the archive is made once for each machine."""
    if pom not in OFTEN_STARTED:
        return ()
    jars = copied_jars(pom)
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr

    def build(folder: Path) -> None:
        flags = [*QUICK_START_FLAGS, QUIET, f"-XX:ArchiveClassesAtExit={folder / FILE}"]
        tool(["java", *flags, "-cp", class_path(jars), LOADER, *USED])

    folder = built(f"interop-classes-{digest([LOADER], f'{jars}{version}{USED}')}", build)
    return (f"-XX:SharedArchiveFile={folder / FILE}", QUIET)
