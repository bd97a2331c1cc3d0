"""clients, for threads.

Written from gantrymq.client.admin.clients, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from typing import Any

from gantrymq.client.admin.clients import ClientAdmin, OpenConnection, ProducerInfo
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.remoting.admin_bodies import ConsumerConnection, ProducerConnection


class SyncClientAdmin(BlockingPart[ClientAdmin]):
    """`admin.clients`: the clients at one broker."""

    def consumers_at(self, address: str, group: str) -> ConsumerConnection:
        """The group's consumers and their subscriptions. ResponseError CONSUMER_NOT_ONLINE when there is none."""
        return self._run(self._part().consumers_at(address, group))

    def producers_of_group_at(self, address: str, group: str) -> ProducerConnection:
        """The group's producers. ResponseError when there is none."""
        return self._run(self._part().producers_of_group_at(address, group))

    def running_info_json_at(self, address: str, group: str, client_id: str) -> bytes:
        """What a running consumer says of itself: JSON in fastjson's dialect, as the client wrote it."""
        return self._run(self._part().running_info_json_at(address, group, client_id))

    def running_info_at(self, address: str, group: str, client_id: str, *, with_stacks: bool = False) -> dict[str, Any]:
        """The same as an object; mqTable is keyed by MessageQueue. with_stacks: member jstack has the text."""
        return self._run(self._part().running_info_at(address, group, client_id, with_stacks=with_stacks))

    def producers_at(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Every producer group at this broker with its producers. Apache's brokers know this since 4.9.4."""
        return self._run(self._part().producers_at(address))

    def connections_at(self, address: str) -> list[OpenConnection]:
        """Every open connection of a GantryMQ broker. Apache's brokers refuse with REQUEST_CODE_NOT_SUPPORTED."""
        return self._run(self._part().connections_at(address))

    def disconnect_at(self, address: str, *, client_id: str = "", remote: str = "") -> int:
        """Close the connections of a client id, of a remote address ("ip:port"), or of both; how many these were.

        Clients connect again by themselves. Apache's brokers refuse with REQUEST_CODE_NOT_SUPPORTED.
        """
        return self._run(self._part().disconnect_at(address, client_id=client_id, remote=remote))
