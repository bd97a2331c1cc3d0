"""Settings of the appliance as a whole: its folder, its addresses, the number of brokers.

Each field of `ApplianceConfig` is declared once and can be given four ways; the first that names it wins:

    argument      gantry up --http-port 8081
    environment   GANTRY_HTTP_PORT=8081
    file          http_port = 8081            in gantry.toml
    default       8080

The file is the one that `--config` or GANTRY_CONFIG names, else `gantry.toml` in the working folder, if other accounts
of the machine can't write it. An unknown name is refused, with the nearest known name as a hint. The settings of a
single broker are RocketMQ's own and stand in that broker's properties file; they are not repeated here.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.settings.attached import check_attached
from appliance.settings.broker_processes import (
    BROKERS_MAX,
    SLAVES_MAX,
    BrokerProcess,
    broker_processes,
)
from appliance.settings.lake_place import place_of
from appliance.settings.service_urls import POSTGRESQL, REDIS, check_url
from appliance.settings.sign_in import check_sign_in
from appliance.settings.variables import CONFIG_VARIABLE, ENVIRONMENT_PREFIX, is_setting_variable
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

ROOT = Path(__file__).resolve().parents[2]  # the checkout: manage.py and deploy/ stand here
DEFAULT_FILE = "gantry.toml"
X_FORWARDED, FORWARDED = "x-forwarded", "forwarded"  # families of headers that proxies set
PATHS = ("tls_cert", "tls_key", "tls_trust", "attach_account", "attach_trust", "oidc_client_secret_file", "oidc_trust")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def option(default: Any, doc: str, *, is_secret: bool = False) -> Any:
    """A field with its default and the text that `gantry up --help` shows. A secret is in no repr."""
    return field(default=default, repr=not is_secret, metadata={"doc": doc})


@dataclass(frozen=True, kw_only=True)
class ApplianceConfig:
    """How the appliance runs. Checked when built, trusted after; `gantry up` replaces port 0 with a free port."""

    data: Path = option(ROOT / "data", "folder for everything: messages, dashboard, reports, logs")
    bind: str = option("127.0.0.1", "address that every listener binds to")
    advertise: str = option("", "address that clients use to connect; empty: the bind address, or this host's own")
    http_port: int = option(8080, "port of the dashboard and REST API (0: a free one)")
    namesrv_port: int = option(9876, "port of the name server (0: a free one)")
    broker_port: int = option(10911, "port of the first broker; each further broker is 100 above (0: a free one)")
    brokers: int = option(1, f"number of brokers, 1 to {BROKERS_MAX}; each is a process of its own")
    slaves: int = option(
        0,
        f"slaves of each broker, 0 to {SLAVES_MAX}: further processes that copy its messages, for trying and for tests",
    )
    cluster: str = option("DefaultCluster", "name of the cluster the brokers belong to")
    attach: str = option(
        "",
        "name servers of another cluster, which the dashboard manages instead of one of its own: host:port;host:port",
    )
    attach_account: str = option("", "file with the accessKey and secretKey that the dashboard signs with there")
    attach_trust: str = option("", "authorities (PEM) that signed that cluster's certificates; empty: no TLS to it")
    accounts: bool = option(False, "clients need an account (RocketMQ's ACL); accounts are kept in the data folder")
    allow_open_network: bool = option(False, "bind to more than loopback although brokers require no account")
    tls_cert: str = option(
        "", "certificate chain (PEM) of dashboard, name server and brokers; with it they accept TLS too"
    )
    tls_key: str = option("", "private key of tls_cert (PEM); empty: it is in the same file")
    tls_trust: str = option("", "authorities (PEM) that signed tls_cert and clients' certificates; empty: tls_cert")
    tls_mode: str = option("", "permissive: TLS and plain connections on one port; enforcing: TLS only")
    tls_client_auth: str = option("none", "request a certificate of clients: none, optional or require")
    allowed_hosts: str = option("", "further host names of the dashboard, separated by commas")
    trusted_proxies: str = option(
        "", "addresses and networks of reverse proxies in front of the dashboard, separated by commas"
    )
    proxy_headers: str = option(
        "x-forwarded", "headers that those proxies set: x-forwarded (-for, -proto, -host) or forwarded"
    )
    alarm_networks: str = option(
        "", "addresses and networks that alarms may be sent to although they are private, separated by commas"
    )
    oidc_issuer: str = option(
        "", "OpenID Connect provider that people may sign in with, by its issuer URL; empty: none"
    )
    oidc_client_id: str = option("", "the dashboard's client id at that provider")
    oidc_client_secret_file: str = option(
        "", "file with its secret; empty: the variable GANTRY_OIDC_CLIENT_SECRET, or a public client without one"
    )
    oidc_name: str = option("", "what the button calls the provider; empty: its host")
    oidc_scope: str = option("openid profile", "scopes that are asked for; openid is one of them")
    oidc_user_claim: str = option("preferred_username", "claim with the name of the account")
    oidc_role_claim: str = option("groups", "claim with groups or roles; a.b looks into an object")
    oidc_roles: str = option(
        "", "roles by that claim's values: VALUE=ROLE or VALUE=ROLE:PREFIX PREFIX, separated by semicolons"
    )
    oidc_others: str = option("refuse", "people without such a role: refuse, or reader, who may read all")
    oidc_trust: str = option("", "authorities (PEM) that signed the provider's certificate; empty: the machine's")
    oidc_networks: str = option(
        "", "private addresses and networks of the provider's hosts other than the issuer's, separated by commas"
    )
    database_url: str = option(
        "",
        "PostgreSQL for the dashboard's tables: postgresql://user@host:5432/name; empty: SQLite in the data folder",
        is_secret=True,
    )
    channel_layer_url: str = option(
        "", "Redis that carries live pages: redis://host:6379/0; empty: the web process's memory", is_secret=True
    )
    http_hsts_s: int = option(0, "seconds for which browsers use https only, on every port of the host (HSTS); 0: off")
    http_body_bytes_max: int = option(
        6 << 20, "largest body of a request to the dashboard, in bytes (64 KiB before log-in)"
    )
    http_connections_max: int = option(
        1024, "connections to the dashboard in all (fewer where the limit of open files is low)"
    )
    http_connections_per_address_max: int = option(
        256, "connections to the dashboard from one address, beside live pages of signed-in accounts (400 an account)"
    )
    fast_path: str = option(
        "auto", "brokers' compiled fast path: auto (used when it is there), on (no start without it) or off"
    )
    install_reports: bool = option(True, "install the report stack (Spark) in the background when it is missing")
    spark_master: str = option("local[2]", "where reports run: local[N], or the URL of a Spark cluster")
    java_home: str = option("", "Java for reports; empty: JAVA_HOME, java on the path, or the report stack's own")
    report_timeout_s: float = option(900.0, "seconds after which a report run is killed; what it has read is kept")
    report_memory: str = option("1g", "heap of a report run's JVM, as Java writes it")
    report_priority: str = option(
        "low", "what runs get of the processor beside brokers: low, or idle (only what nothing else wants)"
    )
    report_cores: int = option(0, "cores of this machine that a run may use, Java included; 0: all but one")
    report_pause_ms: float = option(
        50.0, "milliseconds that a request waits in a broker's lane, from which runs pause their reading; 0: never"
    )
    report_conf: str = option("", "further settings of Spark for report runs: name=value, separated by commas")
    report_lake: str = option(
        "",
        "where the reports' lake is: a folder, s3://BUCKET/PREFIX or hdfs://HOST:PORT/FOLDER; empty: the data folder",
    )
    report_lake_table: str = option(
        "", "delta: the lake's files are listed as Delta tables too, for other engines; empty: not"
    )
    report_lake_days: float = option(0.0, "days that the reports' lake keeps; 0: for ever")
    report_lake_bytes: int = option(0, "bytes that the reports' lake keeps, of all brokers, the newest; 0: all")
    stop_grace_s: float = option(20.0, "seconds for a process to stop before it is killed")
    web_hang_s: float = option(10.0, "seconds without a heartbeat before the web process is killed and started again")
    worker_hang_s: float = option(
        10.0, "seconds without any answer before a broker or name server is killed and started again; 0: never"
    )
    user: str = option("", "account to run as when started as root (a name or a number)")
    allow_root: bool = option(False, "run as root, where there is no other account")
    log_level: str = option("INFO", "DEBUG, INFO, WARNING or ERROR")

    def __post_init__(self) -> None:
        for name in ("http_port", "namesrv_port", "broker_port"):
            _check_range(name, getattr(self, name), 0, 65535)
        _check_range("brokers", self.brokers, 1, BROKERS_MAX)
        _check_range("slaves", self.slaves, 0, SLAVES_MAX)
        _check_range("stop_grace_s", self.stop_grace_s, 0, 600)
        _check_range("report_timeout_s", self.report_timeout_s, 1, 30 * 86400)
        _check_range("report_cores", self.report_cores, 0, 4096)
        _check_range("report_pause_ms", self.report_pause_ms, 0, 3_600_000)
        if self.report_priority not in ("low", "idle"):
            raise ConfigError(f"report_priority={self.report_priority}: use low or idle")
        if self.report_lake_table not in ("", "delta"):
            raise ConfigError(f"report_lake_table={self.report_lake_table}: use delta, or leave it empty")
        _check_range("report_lake_days", self.report_lake_days, 0, 36525)
        _check_range("report_lake_bytes", self.report_lake_bytes, 0, 1 << 60)
        _check_range("http_body_bytes_max", self.http_body_bytes_max, 64 << 10, 1 << 30)
        _check_range("http_hsts_s", self.http_hsts_s, 0, 10 * 365 * 86400)
        for name in ("http_connections_max", "http_connections_per_address_max"):
            _check_range(name, getattr(self, name), 16, 1 << 20)
        _check_range("web_hang_s", self.web_hang_s, 1, 3600)
        if self.worker_hang_s:
            _check_range("worker_hang_s", self.worker_hang_s, 1, 3600)
        if self.log_level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ConfigError(f"log_level={self.log_level}: use DEBUG, INFO, WARNING or ERROR")
        if self.fast_path not in ("auto", "on", "off", "sanitize"):  # the last one is for tests
            raise ConfigError(f"fast_path={self.fast_path}: use auto, on or off")
        if self.broker_port and any(broker.port >= 65535 for broker in self.broker_processes):
            raise ConfigError(f"broker_port={self.broker_port}: no room for {self.brokers} brokers 100 ports apart")
        if not self.bind:
            raise ConfigError("bind is empty: use 127.0.0.1, an address of this machine, or 0.0.0.0 for all of them")
        self._check_tls()
        check_url("database_url", self.database_url, POSTGRESQL)
        check_url("channel_layer_url", self.channel_layer_url, REDIS)
        self._check_proxies()
        self._check_networks()
        check_attached(self)
        place_of(self.report_lake)
        check_sign_in(self)
        object.__setattr__(self, "data", Path(self.data).expanduser().absolute())
        object.__setattr__(self, "log_level", self.log_level.upper())
        if not self.advertise:
            object.__setattr__(self, "advertise", _address_to_advertise(self.bind))

    def _check_tls(self) -> None:
        """Refuse settings that contradict each other; make paths absolute, because processes have other folders."""
        if self.tls_mode not in ("", "disabled", "permissive", "enforcing"):
            raise ConfigError(f"tls_mode={self.tls_mode}: use permissive, enforcing or disabled")
        if self.tls_client_auth not in ("none", "optional", "require"):
            raise ConfigError(f"tls_client_auth={self.tls_client_auth}: use none, optional or require")
        if not self.tls_cert and (self.tls_key or self.tls_trust or self.tls_mode in ("permissive", "enforcing")):
            raise ConfigError("TLS needs a certificate: name one with tls_cert (`gantry tls create FOLDER` makes one)")
        for name in PATHS:
            if path := getattr(self, name):
                object.__setattr__(self, name, str(Path(path).expanduser().absolute()))

    def _check_networks(self) -> None:
        for name in ("alarm_networks", "oidc_networks"):
            try:
                _networks(getattr(self, name))
            except ValueError as exc:
                raise ConfigError(
                    f"{name}={getattr(self, name)}: {exc}; use an address or a network, such as 10.0.0.7 or 10.0.0.0/24"
                ) from exc

    def _check_proxies(self) -> None:
        if self.proxy_headers not in (X_FORWARDED, FORWARDED):
            raise ConfigError(f"proxy_headers={self.proxy_headers}: use {X_FORWARDED} or {FORWARDED}")
        try:
            _ = self.trusted_networks
        except ValueError as exc:
            raise ConfigError(
                f"trusted_proxies={self.trusted_proxies}: {exc}; use an address or a network, such as 10.0.0.7 or "
                "10.0.0.0/24"
            ) from exc

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The networks of `trusted_proxies`."""
        return _networks(self.trusted_proxies)

    @property
    def alarm_networks_allowed(self) -> tuple[Network, ...]:
        """The networks of `alarm_networks`."""
        return _networks(self.alarm_networks)

    @property
    def oidc_networks_allowed(self) -> tuple[Network, ...]:
        """The networks of `oidc_networks`."""
        return _networks(self.oidc_networks)

    @property
    def client_tls(self) -> TlsConfig | None:
        """TLS between the appliance's own processes, or to the cluster it is attached to; None: plain connections.

        Any certificate signed by tls_trust or attach_trust is accepted: brokers are known by their addresses, which a
        certificate for a public name does not contain.
        """
        if self.attach:
            return TlsConfig(trust_cert=self.attach_trust, check_host=False) if self.attach_trust else None
        if not self.tls_cert or self.tls_mode == "disabled":
            return None
        return TlsConfig(
            trust_cert=self.tls_trust or self.tls_cert,
            cert=self.tls_cert,
            key=self.tls_key or None,
            check_host=False,
        )

    @property
    def client_credentials(self) -> Credentials | None:
        """The account with which the appliance's processes sign, None without accounts. Raises ConfigError."""
        if self.attach:
            return Credentials.from_file(self.attach_account) if self.attach_account else None
        return Credentials.from_file(self.own_account_file) if self.accounts else None

    @property
    def http_tls(self) -> bool:
        """Whether the web process itself serves the dashboard over TLS."""
        return bool(self.tls_cert) and self.tls_mode != "disabled"

    @property
    def http_scheme(self) -> str:
        return "https" if self.http_tls else "http"

    # ---- where things are

    @property
    def accounts_folder(self) -> Path:
        return self.data / "accounts"

    @property
    def own_account_file(self) -> Path:
        return self.accounts_folder / "appliance.yml"

    @property
    def dashboard_folder(self) -> Path:
        return self.data / "dashboard"

    @property
    def namesrv_folder(self) -> Path:
        return self.data / "namesrv"

    @property
    def brokers_folder(self) -> Path:
        return self.data / "brokers"

    @property
    def reports_folder(self) -> Path:
        return self.data / "reports"

    @property
    def logs_folder(self) -> Path:
        return self.data / "logs"

    # ---- who listens where

    @property
    def namesrv_address(self) -> str:
        """host:port of the name server, for clients, brokers and the dashboard; attached: host:port;host:port."""
        return self.attach or join_address(self.advertise, self.namesrv_port)

    @property
    def http_address(self) -> str:
        return join_address(self.advertise, self.http_port)

    @property
    def broker_processes(self) -> tuple[BrokerProcess, ...]:
        """Brokers, each followed by its slaves; none where the dashboard is attached to another cluster."""
        return () if self.attach else broker_processes(self.brokers, self.slaves, self.broker_port)

    def broker_address_of(self, broker: BrokerProcess) -> str:
        return join_address(self.advertise, broker.port)

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.bind)

    # ---- the loader

    @classmethod
    def load(
        cls,
        arguments: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        config_file: Path | None = None,
        working_folder: Path | None = None,
    ) -> ApplianceConfig:
        """Merge the settings of all four sources; an argument of None counts as not given. Raises ConfigError."""
        environment = os.environ if environment is None else environment
        unknown = [name for name in environment if is_setting_variable(name) and _field_of(name) not in _FIELDS]
        if unknown:
            raise ConfigError(_unknown_name(unknown[0], [ENVIRONMENT_PREFIX + name.upper() for name in _FIELDS]))
        path = config_file or _configured_file(environment, working_folder or Path.cwd())
        values = _read_file(path) if path else {}
        values |= _from_variables(environment)
        values |= {name: value for name, value in (arguments or {}).items() if value is not None}
        return cls(**values)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> ApplianceConfig:
        """Read the settings that `gantry up` has exported for its processes. Unknown variables are ignored here."""
        return cls(**_from_variables(os.environ if environment is None else environment))

    def to_environment(self) -> dict[str, str]:
        """The variables from which `from_environment` builds an equal object."""
        return {ENVIRONMENT_PREFIX + name.upper(): _as_text(getattr(self, name)) for name in _FIELDS}


_FIELDS = {item.name: item for item in dataclasses.fields(ApplianceConfig)}


def describe(name: str) -> str:
    """The text about one setting, with its default."""
    item = _FIELDS[name]
    shown = "data/ in the checkout" if name == "data" else item.default
    return f"{item.metadata['doc']} (default: {shown})" if shown != "" else item.metadata["doc"]


def join_address(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a listener on `host` can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address_to_advertise(bind: str) -> str:
    """An address that clients can connect to; for a wildcard bind this host's own address, else loopback."""
    if bind not in ("0.0.0.0", "::"):
        return bind
    from appliance.settings.roles import outward_address  # here, because it imports the workers' settings

    return outward_address()


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(name.strip()) for name in text.split(",") if name.strip())


def _check_range(name: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:
        raise ConfigError(f"{name}={value}: use a number from {lowest} to {highest}")


def _configured_file(environment: Mapping[str, str], working_folder: Path) -> Path | None:
    if named := environment.get(CONFIG_VARIABLE):
        return Path(named)
    usual = working_folder / DEFAULT_FILE
    if not usual.is_file():
        return None
    _refuse_untrusted(usual)
    return usual


def _refuse_untrusted(path: Path) -> None:
    """Refuse a gantry.toml that another account may have written. It is read without being named, its `java_home` is a
    program to run, and the working folder may be /tmp. Raises ConfigError."""
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        why = f"belongs to another account (user id {found.st_uid})"
    elif found.st_mode & stat.S_IWOTH:
        why = "can be written by every account of this machine"
    else:
        return
    raise ConfigError(f"{path} {why}, so it is not read by default: use --config {path} if you trust it")


def _read_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}; give an existing file to --config") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    values = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in _FIELDS:
            raise ConfigError(f"{path}: {_unknown_name(key, _FIELDS)}")
        values[name] = _typed(name, value, f"{path}: {key}")
    if "data" in values and not values["data"].is_absolute():
        values["data"] = path.absolute().parent / values["data"]
    return values


def _from_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    given = ((_field_of(name), name, value) for name, value in environment.items() if is_setting_variable(name))
    return {name: _typed(name, value, variable) for name, variable, value in given if name in _FIELDS}


def _field_of(variable: str) -> str:
    return variable.removeprefix(ENVIRONMENT_PREFIX).lower()


def _typed(name: str, value: Any, where: str) -> Any:
    """`value` as the type of the field's default; text is converted, other values must have that type."""
    kind: Any = type(_FIELDS[name].default)
    try:
        if issubclass(kind, Path):
            return Path(value)
        if kind is bool:
            return value if isinstance(value, bool) else _BOOLEANS[str(value).strip().lower()]
        if kind is float and isinstance(value, int | float | str):
            return float(value)
        if kind is int and (isinstance(value, str) or type(value) is int):
            return int(value)
        if kind is str and isinstance(value, str):
            return value
    except (ValueError, KeyError, TypeError):
        pass  # reported below, with the expected type
    raise ConfigError(f"{where}={value!r}: use {_KIND_NAMES[kind]}")


_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(ROOT): "a path"}


def _unknown_name(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"unknown setting {name}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
