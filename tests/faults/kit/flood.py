"""Sends without end and without looking at the answers, over many connections: `python -m tests.faults.kit.flood PORT
CONNECTIONS SECONDS`. Prints "connected", waits for a line, and at its end prints what it was answered, as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field

from tests.faults.kit.frame_ring import send_ring

TOPIC = "Flood"
BODY_BYTES = 128
FRAMES = 256  # of one block that is sent over and over


@dataclass
class Sender:
    """One connection: where it is in the block, and what came back."""

    connection: socket.socket
    position: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"stored": 0, "busy": 0, "bytes": 0})


def main() -> None:
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    ring = send_ring(TOPIC, [0, 1, 2, 3], BODY_BYTES, 2 * FRAMES)
    block = memoryview(b"".join(bytes(view) for view in ring.take(FRAMES)))
    with selectors.DefaultSelector() as selector:
        senders = [Sender(socket.create_connection(("127.0.0.1", port))) for _ in range(connections)]
        for sender in senders:
            sender.connection.setblocking(False)
            selector.register(sender.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, sender)
        print("connected", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, events in selector.select(0.1):
                turn(key.data, events, block)
        totals = {name: sum(sender.counts[name] for sender in senders) for name in ("stored", "busy", "bytes")}
        for sender in senders:
            sender.connection.close()
    print(json.dumps(totals | {"sent": totals["bytes"] * FRAMES // len(block)}))


def turn(sender: Sender, events: int, block: memoryview) -> None:
    """Send and receive what goes without waiting."""
    try:
        if events & selectors.EVENT_WRITE:
            sent = sender.connection.send(block[sender.position :])
            sender.position = (sender.position + sent) % len(block)
            sender.counts["bytes"] += sent
        if events & selectors.EVENT_READ:
            answers = sender.connection.recv(1 << 20)
            sender.counts["stored"] += answers.count(b'"code":0,')
            sender.counts["busy"] += answers.count(b'"code":2,')
    except BlockingIOError:
        return  # the selector tells when there is room, or more, again


if __name__ == "__main__":
    main()
