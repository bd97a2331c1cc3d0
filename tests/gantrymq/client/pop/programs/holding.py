"""NAME_SERVER GROUP COUNT: polls so many messages of the topic GROUP, acknowledges two and waits to be killed.

NAME_SERVER GROUP serve: works on one message after the other, slowly, until SIGTERM.
"""

from __future__ import annotations

import sys
import time

from gantrymq import ConsumeFrom, MessageExt, SyncPopConsumer


def work(messages: list[MessageExt]) -> None:
    print("working", flush=True)
    time.sleep(1.0)
    print("worked", flush=True)


def main(name_server: str, group: str, what: str) -> int:
    consumer = SyncPopConsumer(
        name_server, group=group, consume_from=ConsumeFrom.FIRST_OFFSET, batch_size=6, invisible_s=3.0
    )
    consumer.subscribe(group)
    if what == "serve":
        return consumer.run(work, concurrency=1)
    with consumer:
        found: list[MessageExt] = []
        while len(found) < int(what):
            found += consumer.poll()
        consumer.ack(*found[:2])
        print(f"holds {len(found)}, acknowledged 2", flush=True)
        time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
