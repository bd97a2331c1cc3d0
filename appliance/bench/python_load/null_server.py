"""The null server: answers the load as fast as a Python process can, and does nothing else.

Run as a program it prints its port. Against it the load shows its ceiling. All requests of a connection have one size,
so after the first they are counted by a division; the answers are a ready-made text, sliced.
"""

from __future__ import annotations

import gc
import select
import socket
import struct

from appliance.bench.load_spec import PULLED
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

_RECORD_BYTES = 1200  # about what a record with a body of 1 KB takes
_ANSWERS_AT_ONCE = 256
_RECEIVE_BYTES = 1 << 20


class Client:
    """One connection of the load: the size of its requests, the bytes of the last that is not whole, its answer."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._request_bytes = 0
        self._rest = 0
        self._answer_bytes = 0
        self._answers = memoryview(b"")

    def serve(self, buffer: bytearray) -> bool:
        """Answer every request that became whole; False when the load has gone."""
        got = self.connection.recv_into(buffer)
        if not got:
            return False
        if not self._request_bytes:
            self._learn(buffer, got)
        count, self._rest = divmod(self._rest + got, self._request_bytes)
        while count:
            run = min(count, _ANSWERS_AT_ONCE)
            self.connection.sendall(self._answers[: run * self._answer_bytes])
            count -= run
        return True

    def _learn(self, buffer: bytearray, got: int) -> None:
        (total,) = struct.unpack_from(">i", buffer)
        self._request_bytes = 4 + total
        answer = pull_answer() if b'"code":%d,' % RequestCode.PULL_MESSAGE in buffer[:got] else send_answer()
        self._answer_bytes = len(answer)
        self._answers = memoryview(answer * _ANSWERS_AT_ONCE)


def send_answer() -> bytes:
    fields = {
        "queueId": "0",
        "TRACE_ON": "true",
        "MSG_REGION": "DefaultRegion",
        "msgId": "7F00000100002A9F000000000012D687",
        "queueOffset": "123456",
    }
    return RemotingCommand(0, fields, b"", None, 1_000_000_000, 1, "JAVA", 401, 0).encode()


def pull_answer() -> bytes:
    fields = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(PULLED),
        "minOffset": "0",
        "maxOffset": "123456",
    }
    body = bytes(PULLED * _RECORD_BYTES)
    return RemotingCommand(0, fields, body, "FOUND", 1_000_000_000, 1, "JAVA", 401, 0).encode()


def main() -> None:
    gc.disable()
    buffer = bytearray(_RECEIVE_BYTES)
    clients: dict[int, Client] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener, select.epoll() as poller:
        print(listener.getsockname()[1], flush=True)
        poller.register(listener.fileno(), select.EPOLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == listener.fileno():
                    connection, _ = listener.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    clients[connection.fileno()] = Client(connection)
                    poller.register(connection.fileno(), select.EPOLLIN)
                elif not clients[descriptor].serve(buffer):
                    poller.unregister(descriptor)
                    clients.pop(descriptor).connection.close()


if __name__ == "__main__":
    main()
