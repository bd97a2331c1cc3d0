"""What a consumer is subscribed to: the same for all kinds of consumers."""

from __future__ import annotations

import time
from abc import abstractmethod

from gantrymq.client.connection.lifecycle import Client
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.subscription import parse_subscription
from gantrymq.message.topics import check_topic
from gantrymq.remoting.bodies import SubscriptionData


class Subscribing(Client):
    """A client with subscriptions, by topic."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__(session)
        self._subscriptions: dict[str, SubscriptionData] = {}

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """Consume a topic: "*", "TagA || TagB", or sql="price > 5 AND region = 'eu'". Also while running."""
        check_topic(self._session.namespace.wrap(topic))
        subscription = parse_subscription(topic, expression, time.time_ns() // 1_000_000, sql=sql)
        self._session.do_at_home(lambda: self._change_subscription(topic, subscription))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. Queues of it that the consumer holds are released in a moment."""
        self._session.do_at_home(lambda: self._change_subscription(topic, None))

    def _change_subscription(self, topic: str, subscription: SubscriptionData | None) -> None:
        if subscription is None:
            self._subscriptions.pop(topic, None)
        else:
            self._subscriptions[topic] = subscription
        self._subscriptions_changed()

    @abstractmethod
    def _subscriptions_changed(self) -> None:
        """In the client's event loop: tell brokers and the group, if the client is open."""
