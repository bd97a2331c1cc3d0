"""What the port for slaves asks of them beside an address: TLS, and an account. RocketMQ's slaves know neither.

    haTlsMode    permissive: the first byte decides, as on the broker's own port, so slaves of both kinds come in
    haAccounts   who greets signs what the master challenges it with, by an account that may everything:

        slave -> master   greeting                                  (handshake.py)
        master -> slave   greeting with a challenge
        slave -> master   u32 size, JSON: account and signature
        master -> slave   greeting, or why it is not served

The challenge is the master's and new on each connection, so what was signed once opens no second one.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from base64 import b64encode
from collections.abc import Callable

import orjson

from appliance.acl.account import Account
from appliance.acl.account_book import AccountBook
from appliance.acl.signature_check import is_signature
from appliance.broker.access.access_control import own_credentials
from appliance.broker.replication.ha_frames import FrameError
from appliance.broker.replication.handshake import SIZE, ExactReader, Hello, read_hello
from appliance.remoting.acceptor import PlainListener
from appliance.remoting.tls import ServerTls
from appliance.remoting.tls_listener import TlsListener
from appliance.settings.roles import BrokerConfig
from appliance.settings.tls import DISABLED, ENFORCING
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import Credentials, SigningKey
from gantrymq.remoting.tls import ClientTls

BACKLOG = 64
PROOF_BYTES_MAX = 4096
PURPOSE = "GantryMQ HA"  # what is signed here is no request


class SlaveGuard:
    """One master's. ConfigError when what is asked for can't be had."""

    def __init__(self, config: BrokerConfig, tls: ServerTls | None, accounts: AccountBook | None) -> None:
        self.tls_mode = config.ha_tls_mode or config.effective_tls_mode
        if self.tls_mode != DISABLED and tls is None and not config.is_slave:
            raise ConfigError(f"haTlsMode={self.tls_mode}: name a certificate with tls.server.certPath")
        if config.ha_accounts and accounts is None and not config.is_slave:
            raise ConfigError("haAccounts=true: there are accounts only with aclEnable=true")
        self.needs_account = config.ha_accounts
        self._name = config.broker_name
        self._host = config.bind_address
        self._tls = tls if self.tls_mode != DISABLED else None
        self._outgoing = ClientTls(config.outgoing_tls) if config.outgoing_tls is not None else None
        self.credentials = own_credentials(config)
        self._accounts = accounts
        self._decoy = Account("", SigningKey(secrets.token_hex(16)))  # for names that no account has

    def listener(self, make_protocol: Callable[[], asyncio.Protocol], port: int) -> PlainListener:
        if self._tls is None:
            return PlainListener(make_protocol, host=self._host, port=port, backlog=BACKLOG)
        is_enforcing = self.tls_mode == ENFORCING
        return TlsListener(
            make_protocol, self._tls, host=self._host, port=port, backlog=BACKLOG, is_enforcing=is_enforcing
        )

    @property
    def needs_greeting(self) -> bool:
        """Whether slaves of RocketMQ's can't come in here."""
        return self.needs_account or self.tls_mode == ENFORCING

    def outgoing_tls(self) -> ssl.SSLContext | None:
        """TLS to a broker of the same name, whose port is as this one's. Raises ConfigError."""
        return self._outgoing.context() if self._outgoing is not None and self.tls_mode == ENFORCING else None

    def refusal(self, challenge: str, proof: tuple[str, str]) -> str:
        """Why a peer with this proof is not served; "" when it is."""
        assert self._accounts is not None
        access_key, signature = proof
        account = self._accounts.current.by_key.get(access_key, self._decoy)
        is_genuine = is_signature(account.key, _signed(self._name, challenge), b"", signature.encode())
        if not is_genuine or account is self._decoy:
            return "the slave's account or signature is not right"
        return "" if account.may_everything else f"account {access_key} is not that of an administrator"


async def greet(
    reader: ExactReader, write: Callable[[bytes], object], greeting: Hello, credentials: Credentials | None
) -> Hello:
    """Greet a master, prove the account if it asks for one, and return what it says in the end.

    FrameError; asyncio.IncompleteReadError at the connection's end.
    """
    write(greeting.to_bytes())
    theirs = await read_hello(reader)
    if not theirs.challenge:
        return theirs
    if credentials is None:
        raise FrameError("the master requires an account: name one with credentialsFile")
    write(prove(credentials, greeting.broker_name, theirs.challenge))
    return await read_hello(reader)


def new_challenge() -> str:
    return secrets.token_hex(32)


def prove(credentials: Credentials, broker_name: str, challenge: str) -> bytes:
    """The answer to a challenge, as it is sent."""
    digest = SigningKey(credentials.secret_key).digest(_signed(broker_name, challenge), b"")
    body = orjson.dumps({"accessKey": credentials.access_key, "signature": b64encode(digest).decode()})
    return SIZE.pack(len(body)) + body


async def read_proof(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Read account and signature. FrameError; asyncio.IncompleteReadError at the connection's end."""
    (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
    if size > PROOF_BYTES_MAX:
        raise FrameError(f"a proof of {size} bytes")
    try:
        document = orjson.loads(await reader.readexactly(size))
        return str(document["accessKey"]), str(document["signature"])
    except (LookupError, TypeError, ValueError) as exc:
        raise FrameError(f"no proof of an account: {exc!r}") from exc


def _signed(broker_name: str, challenge: str) -> bytes:
    return "\n".join((PURPOSE, broker_name, challenge)).encode()
