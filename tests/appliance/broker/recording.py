"""A connection that records what is pushed to it: where the contract is the push itself."""

from __future__ import annotations

from gantrymq.remoting.command import RemotingCommand


class RecordingConnection:
    """Stands for a ServerConnection in tests of the tables."""

    def __init__(self, port: int = 1000, host: str = "127.0.0.1") -> None:
        self.remote_text = f"{host}:{port}"
        self.is_closing = False
        self.access: object = None  # nobody is asked for an account
        self.pushed: list[RemotingCommand] = []
        self.close_reason: str | None = None

    def invoke_oneway(self, request: RemotingCommand) -> None:
        self.pushed.append(request)

    def close(self, reason: str) -> None:
        self.is_closing = True
        self.close_reason = reason

    def notices(self) -> list[str]:
        """The groups whose change this connection was told of, in order."""
        return [request.ext_fields["consumerGroup"] for request in self.pushed if request.code == 40]
