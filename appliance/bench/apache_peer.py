"""ApachePeer: Apache RocketMQ's own name server and broker, from Maven's jars, under Java 17."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from appliance.bench import maven
from appliance.bench.disk_watermarks import JAVA_DISK_MARKS
from appliance.bench.peer import Peer

# 4.9.7 is the newest 4.9 whose servers were published; 4.9.8 was published as a client only.
SERVERS = maven.rocketmqs("4.9.7", "namesrv", "broker")

# 4.9 was written for Java 8: under 17 it needs access to these packages.
JAVA_17_FLAGS = (
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
)
# The collector settings of RocketMQ's own runbroker.sh, without its AlwaysPreTouch and 8 GiB heap.
BROKER_FLAGS = (
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0",
)
NAMESRV_HEAP = "128m"

# Where nothing is measured: a process that lives for seconds does not earn back what the second compiler takes.
QUICK_START_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{home}/{role}-java.log</file>
    <encoder><pattern>%d %p %c %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="file"/></root>
</configuration>
"""


class ApachePeer(Peer):
    """Apache RocketMQ from Maven.

    heap: the broker's, as -Xms and -Xmx take it. java_properties: what -D gives. is_measured: with the collector of
    RocketMQ's own scripts, and all of Java's compilers; otherwise it starts with less work. java_flags: for both.
    servers: those of another version.
    """

    label = "apache"

    def __init__(
        self,
        home: Path,
        *,
        heap: str = "2g",
        broker_properties: Mapping[str, str] | None = None,
        java_properties: Mapping[str, object] | None = None,
        java_flags: Sequence[str] = (),
        is_measured: bool = True,
        servers: maven.Artifacts = SERVERS,
    ) -> None:
        super().__init__(home, broker_properties=broker_properties)
        self._namesrv_flags = (*(() if is_measured else QUICK_START_FLAGS), *java_flags)
        self._broker_flags = (*(BROKER_FLAGS if is_measured else QUICK_START_FLAGS), *java_flags)
        self._java_properties = {**JAVA_DISK_MARKS, **(java_properties or {})}
        self.heap = heap
        self._java = maven.find_tool("java", "Apache RocketMQ runs on Java 17")
        self._jars = maven.copied_jars(servers)

    @property
    def version(self) -> str:
        """Read from the jar that runs, so that it is the measured version."""
        (jar,) = self._jars.glob("rocketmq-broker-*.jar")
        return f"Apache RocketMQ {jar.stem.removeprefix('rocketmq-broker-')}"

    def _namesrv_command(self, properties: Path) -> list[str | Path]:
        flags = (f"-Xms{NAMESRV_HEAP}", f"-Xmx{NAMESRV_HEAP}", *self._namesrv_flags)
        return self.command("namesrv", flags, "org.apache.rocketmq.namesrv.NamesrvStartup", properties)

    def broker_command(self, properties: Path) -> list[str | Path]:
        flags = (f"-Xms{self.heap}", f"-Xmx{self.heap}", *self._broker_flags)
        return self.command("broker", flags, "org.apache.rocketmq.broker.BrokerStartup", properties)

    def command(self, role: str, flags: tuple[str, ...], main: str, properties: Path) -> list[str | Path]:
        conf = self.home / "conf"
        conf.mkdir(exist_ok=True)
        (conf / f"logback_{role}.xml").write_text(_LOGBACK.format(home=self.home, role=role))
        command: list[str | Path] = [self._java, *flags, *JAVA_17_FLAGS]
        command += [f"-Drocketmq.home.dir={self.home}", f"-Duser.home={self.home}"]
        command += [f"-Djava.io.tmpdir={self.home}", "-Djava.net.preferIPv4Stack=true"]
        command += [f"-D{name}={value}" for name, value in self._java_properties.items()]
        return [*command, "-cp", maven.class_path(self._jars), main, "-c", properties]
