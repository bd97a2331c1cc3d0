"""What handlers name in their parameters to be given it, by FastStream's context."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from faststream._internal.context import Context

from gantrymq.client.produce import producer
from gantrymq.contrib.faststream import broker, message

GantryMessage: TypeAlias = Annotated[message.GantryMessage, Context("message")]
GantryBatchMessage: TypeAlias = Annotated[message.GantryBatchMessage, Context("message")]
GantryBroker: TypeAlias = Annotated[broker.GantryBroker, Context("broker")]
Producer: TypeAlias = Annotated[producer.Producer, Context("broker._connection")]
