"""The official command line: org.apache.rocketmq:rocketmq-tools, as `mqadmin` starts it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from appliance.bench import apache_peer, maven
from tests.interop.class_archive import archive_flags

TIMEOUT_S = 120.0
_LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{home}/tools.log</file>
    <encoder><pattern>%d %p %c %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="file"/></root>
</configuration>
"""


class MqAdmin:
    """Runs one sub-command after the other, each in a virtual machine of its own; `home` is a folder of its own.

    MqAdminSession takes one for many; there properties of the virtual machine are the same for all.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._jars = maven.copied_jars(apache_peer.SERVERS)
        write_logback(home)

    def run(self, *arguments: object, java_properties: Mapping[str, object] = MappingProxyType({})) -> str:
        """What the sub-command printed, errors too. mqadmin's exit code says nothing: it is 0 for a refusal."""
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", *apache_peer.JAVA_17_FLAGS]
        command += [f"-Drocketmq.home.dir={self._home}", f"-Duser.home={self._home}", f"-Djava.io.tmpdir={self._home}"]
        command += [f"-D{name}={value}" for name, value in java_properties.items()]
        command += archive_flags(apache_peer.SERVERS)
        command += ["-cp", maven.class_path(self._jars), "org.apache.rocketmq.tools.command.MQAdminStartup"]
        command += [str(argument) for argument in arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=self._home)
        return done.stdout + done.stderr


def write_logback(home: Path) -> None:
    """The one file that mqadmin does not start without."""
    (home / "conf").mkdir(parents=True, exist_ok=True)
    (home / "conf" / "logback_tools.xml").write_text(_LOGBACK.format(home=home))
