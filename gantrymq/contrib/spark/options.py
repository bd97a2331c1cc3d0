"""The options of the data source, checked. What can't be meant is refused by name: a wrong option is no default.

Spark shows options in plans and on its pages, but for those whose names fit `spark.redaction.regex`: secretKey,
accessKey, securityToken and tlsKeyPassword do. A file or the environment of each machine keeps them out altogether.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantrymq.contrib.spark.columns import COMMON, ON_DEMAND
from gantrymq.errors import ConfigError
from gantrymq.message.topics import TOOLS_GROUP
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

CONNECTION = (
    "namesrv", "accessKey", "secretKey", "securityToken", "credentialsFile",
    "tls", "tlsTrustCert", "tlsCert", "tlsKey", "tlsKeyPassword", "tlsCheckHost", "tlsVerify",
)  # fmt: skip
READING = (
    *CONNECTION, "path", "commitLog", "brokerName", "group", "requestTimeoutMs",
    "subscribe", "subscribePattern", "assign", "includeInternal", "columns",
    "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp",
    "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger", "minPartitions", "failOnDataLoss",
)  # fmt: skip
WRITING = (*CONNECTION, "topic", "group", "idProperty", "maxMessagesPerSecond", "sendTimeoutMs", "compressType")
_OF_SPARK = ("checkpointLocation", "path", "queryName", "mergeSchema", "provider")  # may come along
_TLS = ("tlsTrustCert", "tlsCert", "tlsKey", "tlsKeyPassword", "tlsCheckHost", "tlsVerify")


class Options:
    """What the user said, by name without regard to case. ConfigError for a name that is unknown."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): str(value) for name, value in given.items()}
        names = {name.lower() for name in (*known, *_OF_SPARK)}
        unknown = sorted(name for name in self._given if name not in names)
        if unknown:
            raise ConfigError(f"option {unknown[0]}: unknown here; there are {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return bool(self._given.get(name.lower()))

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower()) or default

    def texts(self, name: str) -> tuple[str, ...]:
        """What stands between commas."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def number(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        if name not in self:
            return default
        text = self.text(name)
        if not re.fullmatch(r"-?\d{1,18}", text) or int(text) < least:
            raise ConfigError(f"option {name}={text!r:.40}: a whole number of at least {least} is wanted")
        return int(text)

    def truth(self, name: str, default: bool) -> bool:
        text = self.text(name, str(default)).lower()
        if text not in ("true", "false"):
            raise ConfigError(f"option {name}={text!r:.40}: it must be true or false")
        return text == "true"

    def table(self, name: str) -> dict[str, Any]:
        """A JSON object: topic to what is said of it."""
        try:
            found = json.loads(self.text(name))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ConfigError(f'option {name}: JSON such as {{"orders": {{"0": 23}}}} is wanted')
        return found


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster. Files and environment are read where it is used, so on each machine of a cluster."""

    name_servers: str
    tls: TlsConfig | None
    credentials_file: str
    account: tuple[str, str, str | None] | None

    def __repr__(self) -> str:
        return f"Connection({self.name_servers!r})"

    def credentials(self) -> Credentials | None:
        """The account: of the options, else of the file, else of the environment, else none."""
        if self.account is not None:
            return Credentials(*self.account)
        if self.credentials_file:
            return Credentials.from_file(self.credentials_file)
        return Credentials.from_environment()


def connection_of(options: Options) -> Connection:
    """The connection that the options name. ConfigError."""
    if ("accessKey" in options) != ("secretKey" in options):
        raise ConfigError("an account needs both options, accessKey and secretKey")
    if "accessKey" in options and "credentialsFile" in options:
        raise ConfigError("an account comes from accessKey and secretKey, or from credentialsFile: not from both")
    account = None
    if "accessKey" in options:
        account = options.text("accessKey"), options.text("secretKey"), options.text("securityToken") or None
    tls = None
    if options.truth("tls", any(name in options for name in _TLS)):
        tls = TlsConfig(
            trust_cert=options.text("tlsTrustCert") or None,
            cert=options.text("tlsCert") or None,
            key=options.text("tlsKey") or None,
            key_password=options.text("tlsKeyPassword"),
            check_host=options.truth("tlsCheckHost", True),
            verify=options.truth("tlsVerify", True),
        )
    return Connection(options.text("namesrv"), tls, options.text("credentialsFile"), account)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which queues are read. `named` topics, those that fit `pattern`, or all; `assigned`: only these labels."""

    named: tuple[str, ...] = ()
    pattern: str = ""
    assigned: Mapping[str, tuple[str, ...]] | None = None
    includes_internal: bool = False

    def wants_topic(self, topic: str, *, is_internal: bool) -> bool:
        if self.named:
            return topic in self.named
        if is_internal and not self.includes_internal:
            return False
        return re.fullmatch(self.pattern, topic) is not None if self.pattern else True


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a reader. Either `path` or `connection` is set."""

    path: Path | None
    commit_log: tuple[Path, ...]
    broker_name: str | None
    connection: Connection | None
    group: str
    request_timeout_ms: int
    selection: Selection
    columns: tuple[str, ...]
    messages_max: int | None
    partitions_min: int
    fails_on_loss: bool


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a reader. ConfigError names the option that is wrong."""
    options = Options(given, READING)
    if ("path" in options) == ("namesrv" in options):
        raise ConfigError(
            'say where messages are: option("path", a store folder) or option("namesrv", "host:9876"), one of both'
        )
    path = Path(options.text("path").removeprefix("file://")) if "path" in options else None
    names = options.texts("columns")
    if names == ("*",):
        names = tuple(column.name for column in (*COMMON, *ON_DEMAND))
    return ReadOptions(
        path=path,
        commit_log=_folders(options, path),
        broker_name=options.text("brokerName") or None,
        connection=connection_of(options) if path is None else None,
        group=options.text("group", TOOLS_GROUP),
        request_timeout_ms=options.number("requestTimeoutMs", 120_000) or 0,
        selection=_selection(options),
        columns=names or tuple(column.name for column in COMMON),
        messages_max=options.number("maxOffsetsPerTrigger"),
        partitions_min=options.number("minPartitions", 1) or 1,
        fails_on_loss=options.truth("failOnDataLoss", True),
    )


def _folders(options: Options, path: Path | None) -> tuple[Path, ...]:
    if path is None:
        return ()
    text = options.text("commitLog")
    if not text:
        return (path / "commitlog",)
    return tuple(Path(name) for name in (json.loads(text) if text.startswith("[") else options.texts("commitLog")))


def _selection(options: Options) -> Selection:
    said = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if len(said) > 1:
        raise ConfigError(f"options {' and '.join(said)}: only one of them can choose the topics")
    pattern = options.text("subscribePattern")
    try:
        re.compile(pattern)
    except re.error as wrong:
        raise ConfigError(f"option subscribePattern: {wrong}") from wrong
    assigned = None
    if "assign" in options:
        assigned = {}
        for topic, labels in options.table("assign").items():
            if not isinstance(labels, list) or not labels:
                raise ConfigError(f'option assign: {topic}: a list of queues such as ["broker-a:0"] or [0] is wanted')
            assigned[topic] = tuple(str(label) for label in labels)
    named = tuple(assigned) if assigned is not None else options.texts("subscribe")
    return Selection(named, pattern, assigned, options.truth("includeInternal", False))
