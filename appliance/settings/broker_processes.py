"""The broker processes of one appliance: brokers and, beside each, its slaves.

    broker-a      10911   its commit log is written here at first
    broker-a-2    10921   a copy: starts as slave 1 of broker-a
    broker-b      11011

Processes, folders and logs are named by their place and not by their role, because a slave may become the master.
"""

from __future__ import annotations

from dataclasses import dataclass

BROKERS_MAX = 26  # one letter each: broker-a … broker-z
SLAVES_MAX = 3
REPLICAS = 3  # members of a name that elect their master: one may be lost, and the rest still confirm
BROKER_PORT_STEP = 100  # the second broker listens this far above the first
SLAVE_PORT_STEP = 10  # a broker's first slave listens this far above it
VIP_PORT_BELOW = 2  # RocketMQ's "fast" listener of a broker stands two ports below the main one
PROXIES_MAX = 16
HA_PORT_ABOVE = 1  # and its port for slaves one above


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """One broker process. first_id: the broker id that it starts with; 0 is the master. ha_port: for slaves, or 0."""

    name: str
    broker_name: str
    first_id: int
    port: int
    ha_port: int

    @property
    def starts_as_slave(self) -> bool:
        return self.first_id > 0

    @property
    def vip_port(self) -> int:
        return self.port - VIP_PORT_BELOW


def broker_processes(brokers: int, slaves: int, first_port: int) -> tuple[BrokerProcess, ...]:
    """All of them, each broker followed by its slaves."""
    made = []
    for index in range(brokers):
        broker_name = f"broker-{chr(ord('a') + index)}"
        for member in range(slaves + 1):
            name = f"{broker_name}-{member + 1}" if member else broker_name
            port = first_port + BROKER_PORT_STEP * index + SLAVE_PORT_STEP * member
            made.append(BrokerProcess(name, broker_name, member, port, port + HA_PORT_ABOVE if slaves else 0))
    return tuple(made)
