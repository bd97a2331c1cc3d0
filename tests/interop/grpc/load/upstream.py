"""RocketMQ 5.5.0: name server, broker, and its proxy as a process beside them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from appliance.bench.apache_peer import ApachePeer
from appliance.bench.maven import rocketmqs
from appliance.bench.peer import CLUSTER_NAME
from appliance.bench.processes import Process, free_ports

SERVERS = rocketmqs("5.5.0", "namesrv", "broker", "proxy")
PROXY = "org.apache.rocketmq.proxy.ProxyStartup"
LOGBACK = '<configuration><root level="ERROR"/></configuration>'


class Upstream(ApachePeer):
    """RocketMQ 5's own name server and broker; `start_proxy` adds its proxy."""

    label = "upstream"

    def __init__(self, home: Path, **options: Any) -> None:
        super().__init__(home, servers=SERVERS, **options)

    def start_proxy(self, namesrv: str = "", *, cluster: str = CLUSTER_NAME, heap: str = "1g") -> tuple[Process, int]:
        """RocketMQ's proxy, in front of its own broker or another name server's, and its gRPC port."""
        port = free_ports(1)
        settings = {
            "rocketMQClusterName": cluster,
            "proxyMode": "CLUSTER",
            "namesrvAddr": namesrv or self.namesrv_address,
            "grpcServerPort": port,
            "remotingListenPort": port + 1,
            "useEndpointPortFromRequest": True,
        }
        conf = self.home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "rmq.proxy.logback.xml").write_text(LOGBACK)
        (conf / "rmq-proxy.json").write_text(json.dumps(settings))
        flags = (f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC")
        command = self.command("proxy", flags, PROXY, conf / "rmq-proxy.json")
        command[command.index("-c")] = "-pc"
        command[1:1] = [f"-Dcom.rocketmq.proxy.home={self.home}"]
        process = Process("proxy", command, self.home / "proxy.log", env={"RMQ_PROXY_HOME": str(self.home)})
        self._wait(process, lambda: _listens(port))
        return process, port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
