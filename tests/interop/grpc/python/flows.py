"""A program for another environment, with rocketmq-python-client: its generated code and ours exclude each other.

python flows.py ENDPOINTS      sends every kind of message, consumes all, and prints what it saw, a line each
"""

from __future__ import annotations

import sys
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

LIMIT_S = 60
CONFIG = ClientConfiguration(sys.argv[1], Credentials())


def say(*words: object) -> None:
    sys.stdout.write("\t".join(map(str, words)) + "\n")  # one call: threads of the client print at the same time
    sys.stdout.flush()


class Checker(TransactionChecker):
    def check(self, message: Message) -> TransactionResolution:
        say("CHECK", message.body.decode())
        return TransactionResolution.COMMIT


class Listener(MessageListener):
    count = 0

    def consume(self, message: Message) -> ConsumeResult:
        say("PUSH", message.body.decode(), message.message_group, message.delivery_attempt)
        self.count += 1
        return ConsumeResult.SUCCESS


def made(topic: str, body: str, **fields: object) -> Message:
    message = Message()
    message.topic, message.body, message.tag, message.keys = topic, body.encode(), "tag", "k1"
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def produce() -> Producer:
    producer = Producer(CONFIG, ("normal", "fifo", "delay", "tx"), Checker())
    producer.startup()
    for number in range(20):
        producer.send(made("normal", f"n{number}"))
    for number in range(12):
        producer.send(made("fifo", f"f{number}", message_group=f"g{number % 3}"))
    receipt = producer.send(made("delay", "recalled", delivery_timestamp=int(time.time()) + 8))
    is_same = producer.recall_message("delay", receipt.recall_handle) == receipt.message_id
    say("RECALLED", str(is_same).lower())
    producer.send(made("delay", "d0", delivery_timestamp=int(time.time()) + 9))
    for end in ("commit", "rollback", "open"):
        transaction = producer.begin_transaction()
        producer.send(made("tx", end), transaction)
        if end != "open":
            getattr(transaction, end)()
    return producer


def consume(topic: str, count: int) -> None:
    consumer = SimpleConsumer(CONFIG, f"python-{topic}", {topic: FilterExpression()}, 5)
    consumer.startup()
    end = time.monotonic() + LIMIT_S
    while count > 0 and time.monotonic() < end:
        for message in consumer.receive(16, 20) or ():
            say("GOT", topic, message.body.decode(), message.message_group, message.delivery_attempt)
            consumer.ack(message)
            count -= 1
    consumer.shutdown()


def push(count: int) -> None:
    listener = Listener()
    consumer = PushConsumer(CONFIG, "python-push", listener, {"fifo": FilterExpression()})
    consumer.startup()
    end = time.monotonic() + LIMIT_S
    while listener.count < count and time.monotonic() < end:
        time.sleep(0.1)
    consumer.shutdown()


if __name__ == "__main__":
    sender = produce()
    for name, number in (("normal", 20), ("fifo", 12), ("delay", 1), ("tx", 2)):
        consume(name, number)
    push(12)
    sender.shutdown()
    say("DONE")
