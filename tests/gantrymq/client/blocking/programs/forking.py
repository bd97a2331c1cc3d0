"""Opens clients, forks, prints what they do in the child: `forking.py NAME_SERVERS os|c|multiprocessing|billiard`."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import psutil

from gantrymq import ConsumeFrom, Message, SyncProducer, SyncPullConsumer
from gantrymq.errors import ClientClosed

NAME_SERVERS, WAY = sys.argv[1:]
logging.getLogger("gantrymq").setLevel(logging.ERROR)  # a broker that is slow to answer is not what this shows
SAME_PROCESS = -12  # all of a message id but its time and counter
TOPIC = f"forks_{WAY}"
producer = SyncProducer(NAME_SERVERS)
consumer = SyncPullConsumer(NAME_SERVERS, group=TOPIC, consume_from=ConsumeFrom.FIRST_OFFSET)
unopened = SyncProducer(NAME_SERVERS)
NAMES = {client.client_id for client in (producer, unopened)}


def in_child(number: int = 0) -> list[str]:
    first = producer.send(Message(TOPIC, b"inherited"))
    seen = [first.status.name]
    if first.msg_id[:SAME_PROCESS] == parents.msg_id[:SAME_PROCESS]:
        seen.append("the parent's message ids")
    with SyncProducer(NAME_SERVERS) as own:
        seen.append(own.send(Message(TOPIC, b"own")).status.name)
        if WAY == "c" and (inherited := INHERITED & {each.laddr for each in psutil.Process().net_connections("tcp")}):
            seen.append(f"the parent's connections {inherited}")
    with unopened:
        seen.append(unopened.send(Message(TOPIC, b"opened here")).status.name)
        if NAMES & {producer.client_id, unopened.client_id}:
            seen.append("the parent's client id")
    try:
        consumer.poll(1)
    except ClientClosed as exc:
        seen.append("before a fork" if "before a fork" in str(exc) else str(exc))
    consumer.close()
    return seen


def until_other_threads_sleep() -> None:
    """A fork in C copies the interpreter's own locks as they are: one that another thread holds is never released."""
    before: list[list[str]] = []
    while True:
        now = [state_of(each.id) for each in psutil.Process().threads() if each.id != threading.get_native_id()]
        if now == before and all(state.startswith("State:\tS") for state, *_ in now):
            return
        before = now
        time.sleep(0.2)  # in which a thread that waits for the interpreter would get it


def state_of(thread: int) -> list[str]:
    """Whether it sleeps, and how often it has begun to."""
    try:
        lines = Path(f"/proc/self/task/{thread}/status").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:  # it has ended since
        return ["State:\tX"]
    return [line for line in lines if line.startswith(("State:", "voluntary_ctxt_switches:"))]


def forked_by_os() -> list[str]:
    reading, writing = os.pipe()
    if WAY == "c":
        until_other_threads_sleep()
    # A server in C, such as uWSGI, forks while it holds the interpreter's lock, and Python does not hear of it.
    child = ctypes.PyDLL(None).fork() if WAY == "c" else os.fork()
    if not child:
        inherited = [] if WAY == "c" else psutil.Process().net_connections("tcp")
        os.write(writing, " ".join(in_child()).encode() if not inherited else repr(inherited).encode())
        sys.exit(0)
    os.close(writing)
    with os.fdopen(reading) as text:
        seen = text.read()
    assert os.waitpid(child, 0)[1] == 0
    return [seen]


def forked_by_pool() -> list[str]:
    if WAY == "billiard":  # the pool of Celery's prefork workers
        import billiard

        pool = billiard.Pool(2)
    else:
        pool = multiprocessing.get_context("fork").Pool(2)
    with pool:
        return [" ".join(seen) for seen in pool.map(in_child, range(2), 1)]


with producer:
    parents = producer.send(Message(TOPIC, b"parent"))
    consumer.start()
    consumer.subscribe(TOPIC)
    INHERITED = {each.laddr for each in psutil.Process().net_connections("tcp")}
    for outcome in forked_by_os() if WAY in {"os", "c"} else forked_by_pool():
        print(outcome)
    print("parent", producer.send(Message(TOPIC, b"parent")).status.name, bool(consumer.poll(60)))
    consumer.close()
