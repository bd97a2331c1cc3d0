"""Name-server addresses from an HTTP address server: asked at start and every two minutes, as RocketMQ does.

The server answers `GET http://<domain>/rocketmq/<subgroup>` with one line, `host:port;host:port`. Only used with
fetchNamesrvAddrByAddressServer and no namesrvAddr. An answer that is none changes nothing: the last good one stays.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Callable

from appliance.settings.roles import BrokerConfig

logger = logging.getLogger(__name__)

PERIOD_S = 120.0
RETRY_S = 10.0  # until the first answer
TIMEOUT_S = 3.0
ANSWER_BYTES_MAX = 16 * 1024
DEFAULT_PORT = 8080  # of a domain that names none

_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5}")


class AddressServer:
    """Tells `on_addresses` which name servers there are, whenever the answer is another than before."""

    def __init__(self, url: str, on_addresses: Callable[[list[str]], None]) -> None:
        self._url = url
        self._on_addresses = on_addresses
        self._known: list[str] = []
        self._is_failing = False

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(PERIOD_S if self._known else RETRY_S)

    async def look(self) -> None:
        """Ask once. Never raises for a server that is down or answers nonsense."""
        try:
            addresses = parse_addresses(await asyncio.to_thread(_get, self._url))
        except (OSError, ValueError, http.client.HTTPException) as exc:
            if not self._is_failing:  # once per outage
                logger.warning(
                    "address server returned no addresses",
                    extra={"event": "address_server_failed", "url": self._url, "why": str(exc)},
                )
            self._is_failing = True
            return
        self._is_failing = False
        if set(addresses) != set(self._known):
            logger.info(
                "name servers from the address server",
                extra={"event": "name_servers_fetched", "addresses": addresses, "before": self._known},
            )
            self._known = addresses
            self._on_addresses(addresses)


def address_server_url(config: BrokerConfig) -> str | None:
    """Where to ask; None when the setting is off or the addresses are configured."""
    if not config.fetch_namesrv_addresses or config.namesrv_addresses:
        return None
    domain = config.address_server_domain
    host = domain if ":" in domain else f"{domain}:{DEFAULT_PORT}"
    return f"http://{host}/rocketmq/{config.address_server_subgroup}"


def parse_addresses(text: str) -> list[str]:
    """The addresses of an answer, each once. Raises ValueError when it holds none, or something else."""
    addresses = list(dict.fromkeys(item.strip() for item in text.strip().split(";") if item.strip()))
    if not addresses:
        raise ValueError("the answer is empty")
    for address in addresses:
        if not _ADDRESS.fullmatch(address) or not 0 < int(address.rpartition(":")[2]) < 65536:
            raise ValueError(f"{address[:80]!r} is not host:port")
    return addresses


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server at another address is not the server that was configured."""

    def redirect_request(self, *_: object) -> None:
        return None


def _get(url: str) -> str:
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=TIMEOUT_S) as answer:
        body: bytes = answer.read(ANSWER_BYTES_MAX + 1)
    if len(body) > ANSWER_BYTES_MAX:
        raise ValueError(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
    return body.decode()
