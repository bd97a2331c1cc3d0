"""A server on a thread that answers requests as a test tells it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol

Answer = Callable[[list[RemotingCommand]], bytes | None]  # all requests that have arrived together; None closes


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[RemotingCommand]]]:
    """Serves one connection; the value is its address, and the requests so far."""
    seen: list[RemotingCommand] = []

    def serve() -> None:
        with contextlib.suppress(OSError):  # the test is over
            connection, _ = listener.accept()
            with connection:
                protocol = RemotingProtocol()
                while data := connection.recv(1 << 16):
                    protocol.receive_data(data)
                    requests = []
                    while (request := protocol.next_command()) is not None:
                        requests.append(request)
                    seen.extend(requests)
                    if not requests:
                        continue
                    back = answer(requests)
                    if back is None:
                        return
                    connection.sendall(back)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", seen
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes an accept that nothing came to
            thread.join()
