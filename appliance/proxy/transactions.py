"""EndTransaction, and the broker's question how a transaction ended, which goes on to a client that publishes there.

The transaction id says where the half message is. So any proxy can end it, and nothing is kept here.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from appliance.acl.account import PUB
from appliance.proxy.brokers import Brokers, BrokerSession
from appliance.proxy.callers import Caller, whole_name
from appliance.proxy.clients import ClientBook
from appliance.proxy.messages.message_ids import TransactionId
from appliance.proxy.messages.outgoing import client_message
from appliance.proxy.messages.statuses import Refused, ok
from appliance.proxy.protocol.definition_pb2 import Code, TransactionResolution, TransactionSource
from appliance.proxy.protocol.service_pb2 import (
    EndTransactionRequest,
    EndTransactionResponse,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
)
from gantrymq.client.connection.received_messages import read_messages
from gantrymq.errors import RecordError, ResponseError
from gantrymq.message import sysflag
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

STATES = {
    TransactionResolution.COMMIT: sysflag.TRANSACTION_COMMIT,
    TransactionResolution.ROLLBACK: sysflag.TRANSACTION_ROLLBACK,
    TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED: sysflag.TRANSACTION_NONE,
}


class Transactions:
    """The RPC and the question."""

    def __init__(self, brokers: Callable[[], Brokers], clients: ClientBook) -> None:
        self._brokers = brokers
        self._clients = clients

    async def end_transaction(self, caller: Caller, request: EndTransactionRequest) -> EndTransactionResponse:
        topic = caller.topic(request.topic, PUB)
        if not request.transaction_id.strip():
            raise Refused(Code.INVALID_TRANSACTION_ID, "transaction id cannot be blank")
        place = TransactionId.from_text(request.transaction_id)
        state = STATES.get(request.resolution)
        if state is None:
            raise Refused(Code.BAD_REQUEST, f"resolution {request.resolution} is not known")
        session = self._brokers().session(caller.account)
        await session.route(topic)
        is_check = request.source == TransactionSource.SOURCE_SERVER_CHECK
        fields = {
            "producerGroup": topic,
            "tranStateTableOffset": str(place.queue_offset),
            "commitLogOffset": str(place.physical_offset),
            "commitOrRollback": str(state),
            "fromTransactionCheck": str(is_check).lower(),
            "msgId": request.message_id,
            "transactionId": request.message_id,
        }
        address = session.address(place.broker_name)
        command = RemotingCommand.request(RequestCode.END_TRANSACTION, fields)
        if state == sysflag.TRANSACTION_NONE:  # brokers don't answer it
            await session.client.remoting.invoke_oneway(address, command)
        else:
            answer = await session.client.remoting.invoke(address, command)
            if answer.code != ResponseCode.SUCCESS:
                raise ResponseError(answer.code, answer.remark, address=address, role="broker")
        return EndTransactionResponse(status=ok())

    async def asked(self, session: BrokerSession, address: str, request: RemotingCommand) -> None:
        """39 CHECK_TRANSACTION_STATE: have a client that publishes the topic say how it went."""
        fields = request.ext_fields
        try:
            (message,) = await read_messages(request.body)
            offsets = int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"])
        except (RecordError, KeyError, ValueError) as exc:
            logger.warning("question about a transaction not understood: %s", exc, extra={"event": "check_malformed"})
            return
        broker_name = session.broker_at(address)
        publishers = self._clients.publishers(message.topic, session.access_key)
        random.shuffle(publishers)
        if broker_name is None or not publishers:
            logger.debug("no client to ask", extra={"event": "no_producer_to_ask", "topic": message.topic})
            return
        transaction_id = TransactionId(broker_name, *offsets).to_text()
        for client in publishers:
            topic = next(
                resource for resource in client.settings.publishing.topics if whole_name(resource) == message.topic
            )
            command = RecoverOrphanedTransactionCommand(
                message=client_message(message, topic), transaction_id=transaction_id
            )
            for stream in reversed(client.streams):
                if await stream.tell(TelemetryCommand(status=ok(), recover_orphaned_transaction_command=command)):
                    return
