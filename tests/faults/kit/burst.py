"""A burst that nobody waits for: `python -m tests.faults.kit.burst PORT CONNECTIONS ANSWERED ONEWAY`.

So many sends in all, spread over the connections, written as fast as the sockets take them, then as many one-way ones
on the same connections. Prints "started" when it is connected, and when all answers are there their codes, as JSON.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
from collections import Counter
from dataclasses import dataclass, field

from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.kit.frame_ring import send_ring

TOPIC = "Burst"
BODY_BYTES = 900
QUEUES = [0, 1, 2, 3]
PATIENCE_S = 240.0
_CODE = re.compile(rb'"code":(\d+)[,}]')


@dataclass
class Sender:
    """One connection: what it has still to write, and what came back."""

    connection: socket.socket
    rest: memoryview
    answers_missing: int
    received: bytes = b""
    codes: Counter[int] = field(default_factory=Counter)


def main() -> None:
    port, connections, answered, oneway = map(int, sys.argv[1:])
    with selectors.DefaultSelector() as selector:
        senders = []
        for number in range(connections):
            here = answered // connections + (number < answered % connections)
            here_oneway = oneway // connections + (number < oneway % connections)
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            senders.append(Sender(connection, memoryview(frames(here) + oneway_frames(here_oneway)), here))
            selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, senders[-1])
        print("started", flush=True)
        while any(sender.rest or sender.answers_missing for sender in senders):
            ready = selector.select(PATIENCE_S)
            if not ready:
                raise SystemExit("the broker stands still")
            for key, events in ready:
                turn(selector, key.data, events)
        codes: Counter[int] = sum((sender.codes for sender in senders), Counter())
        print(json.dumps({str(code): count for code, count in codes.items()}), flush=True)
        sys.stdin.read()  # the connections stay until the one-way messages were counted
        for sender in senders:
            sender.connection.close()


def frames(count: int) -> bytes:
    """Sends that are answered."""
    ring = send_ring(TOPIC, QUEUES, BODY_BYTES, max(2 * count, 64))
    return b"".join(bytes(view) for view in ring.take(count))


def oneway_frames(count: int) -> bytes:
    fields = dict.fromkeys("defghj", "0") | {"a": "P", "b": TOPIC, "c": "TBW102", "d": "4", "i": "", "k": "false"}
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, bytes(BODY_BYTES))
    return request.mark_oneway().encode() * count


def turn(selector: selectors.BaseSelector, sender: Sender, events: int) -> None:
    """Write and read what goes without waiting."""
    if events & selectors.EVENT_WRITE and sender.rest:
        try:
            sender.rest = sender.rest[sender.connection.send(sender.rest) :]
        except BlockingIOError:
            return  # the selector tells when there is room again
        if not sender.rest:
            selector.modify(sender.connection, selectors.EVENT_READ, sender)
    if events & selectors.EVENT_READ:
        data = sender.connection.recv(1 << 20)
        if not data:
            raise SystemExit("the broker closed a connection")
        sender.received += data
        take_answers(sender)


def take_answers(sender: Sender) -> None:
    """Count whole frames by their code."""
    buffer, at = sender.received, 0
    while len(buffer) - at >= 4 and len(buffer) - at >= (size := 4 + int.from_bytes(buffer[at : at + 4])):
        found = _CODE.search(buffer, at, at + size)
        assert found is not None
        sender.codes[int(found[1])] += 1
        sender.answers_missing -= 1
        at += size
    sender.received = buffer[at:]


if __name__ == "__main__":
    main()
