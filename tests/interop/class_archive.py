"""Classes of Java's programs as Java keeps them in memory: a start takes two thirds of the work with them.

Java makes such an archive of the classes that a process has loaded when it ends (Class Data Sharing). One serves all
programs whose class path begins with the same jars; one that does not fit is left aside by Java, and changes nothing.
Making one takes as long as some twenty starts save, so only jars that are started more often have one.
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from appliance.bench.apache_peer import QUICK_START_FLAGS, SERVERS
from appliance.bench.maven import Artifacts, class_path, copied_jars, rocketmqs
from tests.interop.build_cache import built, digest, tool

CLIENT = rocketmqs("4.9.8", "client", "acl")
OFTEN_STARTED = (CLIENT, SERVERS)
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
def archive_flags(artifacts: Artifacts) -> tuple[str, ...]:
    """Flags of Java for a class path that begins with these jars; the archive is made once for each machine."""
    if artifacts not in OFTEN_STARTED:
        return ()
    jars = copied_jars(artifacts)
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr

    def build(folder: Path) -> None:
        flags = [*QUICK_START_FLAGS, QUIET, f"-XX:ArchiveClassesAtExit={folder / FILE}"]
        tool(["java", *flags, "-cp", class_path(jars), LOADER, *USED])

    folder = built(f"interop-classes-{digest([LOADER], f'{jars}{version}{USED}')}", build)
    return (f"-XX:SharedArchiveFile={folder / FILE}", QUIET)
