"""docs/settings.md, written from the code: `python -m tests.docs.settings_page` writes it, a test compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from appliance.settings import ignored as ignored_settings
from appliance.settings.acl import AclSettings
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.roles import BrokerConfig, NamesrvConfig, ProxyConfig
from appliance.settings.sockets import SocketSettings
from appliance.settings.tls import TlsSettings
from store.base.config import MessageStoreConfig
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "settings.md"
HEAD = """\
# All settings

Written from the code by `python -m tests.docs.settings_page`; don't edit it by hand.

- **The appliance** (`gantry up`): an option (`--http-port 8081`), an environment variable (`GANTRY_HTTP_PORT=8081`), or
  a line in `gantry.toml` (`http_port = 8081`). An option wins over the environment, the environment over the file.
- **A broker**: RocketMQ's own keys in `data/brokers/broker-a/broker.properties`, or in the file that
  `gantry broker -c` names. `gantry up` renews its own lines, between two comments that mark them; the others stay.
- **The name server**: the same in `data/namesrv/namesrv.properties`, or in the file of `gantry namesrv -c`.
- **A proxy**: the same in `data/proxies/proxy.properties`, or in the file of `gantry proxy -c`.

What is marked *live* can be changed while the process runs: `gantry admin config set KEY=VALUE` (mqadmin:
`updateBrokerConfig`, `updateNamesrvConfig`). The change is written into the file first; comments, order and unknown
lines stay. Without a file, or when it can't be written, the change holds until the process ends, and the answer says
so. Paths, addresses, TLS and accounts are never changed this way.

An unknown key is refused at the start as a typing error. Numbers have ranges; the refusal names them.
"""


def page(_written: str = "") -> str:
    """The whole page, whatever it was."""
    parts = [HEAD, _section("The appliance", _appliance_rows(), ("gantry.toml", "default", "meaning"))]
    parts += [
        _section("Broker", _rows(BrokerConfig, without=_shared())),
        _section("Store of a broker", _rows(MessageStoreConfig)),
        _section("Name server", _rows(NamesrvConfig, without=_shared())),
        _section("Proxy", _rows(ProxyConfig, without=_shared())),
        _section("Sockets, of broker and name server", _rows(SocketSettings)),
        _section("TLS, of all three", _rows(TlsSettings)),
        _section("Accounts, of all three", _rows(AclSettings)),
        "## Accepted and without effect\n",
        "RocketMQ's keys that tune what does not exist here. A start names those it finds.\n",
        *(f"- {why}: {_quoted(keys)}" for why, keys in ignored_settings.by_reason(ignored_settings.IGNORED).items()),
        "\n## With one possible value\n\n| key | value | why no other |\n|---|---|---|",
        *(f"| `{key}` | `{fixed.value}` | {fixed.why} |" for key, fixed in sorted(ignored_settings.FIXED.items())),
        "\n## Other names\n\nJava's system properties that mean a setting can be in the file, too.\n",
        "| name | setting |\n|---|---|",
        *(f"| `{name}` | `{key}` |" for name, key in sorted(ignored_settings.OTHER_NAMES.items())),
    ]
    return "\n".join(parts) + "\n"


def _section(title: str, rows: Iterable[tuple[str, str, str]], head: tuple[str, str, str] | None = None) -> str:
    names = head or ("key", "default", "meaning")
    lines = ["| " + " | ".join(names) + " |", "|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _appliance_rows() -> list[tuple[str, str, str]]:
    return [
        (
            f"`{item.name}`",
            "`data/` of the checkout" if item.name == "data" else _shown(item.default),
            _cell(item.metadata["doc"]),
        )
        for item in dataclasses.fields(ApplianceConfig)
    ]


def _rows(config: Any, without: frozenset[str] = frozenset()) -> list[tuple[str, str, str]]:
    fields = [item for item in dataclasses.fields(config) if item.name not in without]
    return [
        (
            f"`{item.metadata['rocketmq']}`",
            _shown(item.default),
            _cell(item.metadata["doc"]) + (" *(live)*" if item.metadata["live"] else ""),
        )
        for item in sorted(fields, key=lambda item: str(item.metadata["rocketmq"]).lower())
    ]


def _shared() -> frozenset[str]:
    return frozenset(
        item.name for kind in (SocketSettings, TlsSettings, AclSettings) for item in dataclasses.fields(kind)
    )


def _shown(value: Any) -> str:
    if isinstance(value, Path):
        value = Path("~") / value.relative_to(Path.home()) if value.is_relative_to(Path.home()) else value
    if isinstance(value, bool):
        value = str(value).lower()
    return "" if value is None or value == "" else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _quoted(keys: Iterable[str]) -> str:
    return " ".join(f"`{key}`" for key in keys)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
