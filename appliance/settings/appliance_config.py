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
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.own_files import HOME_DATA, default_data
from appliance.settings.attached import check_attached
from appliance.settings.broker_processes import (
    BROKERS_MAX,
    PROXIES_MAX,
    REPLICAS,
    SLAVES_MAX,
    BrokerProcess,
    broker_processes,
)
from appliance.settings.checks import (
    Check,
    Network,
    absolute_path,
    any_value,
    between,
    networks,
    networks_of,
    numbers,
    one_of,
)
from appliance.settings.lake_place import place_of
from appliance.settings.service_urls import POSTGRESQL, REDIS, url
from appliance.settings.sign_in import check_sign_in, is_loopback_name
from appliance.settings.sources import as_text, from_variables, merged, variable_of
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

X_FORWARDED, FORWARDED = "x-forwarded", "forwarded"  # families of headers that proxies set


def option(default: Any, doc: str, *, check: Check = any_value, is_secret: bool = False) -> Any:
    """A field with its default, the text that `gantry up --help` shows, and its check. A secret is in no repr."""
    return field(default=default, repr=not is_secret, metadata={"doc": doc, "check": check})


def _folder(name: str, value: Path) -> Path:
    return Path(value).expanduser().absolute()


def _address(name: str, value: str) -> str:
    if not value:
        raise ConfigError("bind is empty: use 127.0.0.1, an address of this machine, or 0.0.0.0 for all of them")
    return value


def _lake(name: str, value: str) -> str:
    place_of(value)
    return value


def _log_level(name: str, value: str) -> str:
    return one_of("DEBUG", "INFO", "WARNING", "ERROR")(name, value.upper())


@dataclass(frozen=True, kw_only=True)
class ApplianceConfig:
    """How the appliance runs. Checked when built, trusted after; `gantry up` replaces port 0 with a free port."""

    data: Path = option(default_data(), "folder for everything: messages, dashboard, reports, logs", check=_folder)
    bind: str = option("127.0.0.1", "address that every listener binds to", check=_address)
    advertise: str = option("", "address that clients use to connect; empty: the bind address, or this host's own")
    http_port: int = option(8080, "port of the dashboard and REST API (0: a free one)", check=between(0, 65535))
    namesrv_port: int = option(9876, "port of the name server (0: a free one)", check=between(0, 65535))
    broker_port: int = option(
        10911, "port of the first broker; each further broker is 100 above (0: a free one)", check=between(0, 65535)
    )
    brokers: int = option(
        1, f"number of brokers, 1 to {BROKERS_MAX}; each is its own process", check=between(1, BROKERS_MAX)
    )
    slaves: int = option(
        0,
        f"slaves of each broker, 0 to {SLAVES_MAX}: further processes that copy its messages, for trying and for tests",
        check=between(0, SLAVES_MAX),
    )
    replicas: int = option(
        1,
        f"members of each broker: 1, or {REPLICAS} that elect their master if etcd is on this machine",
        check=numbers(1, REPLICAS),
    )
    proxy_port: int = option(
        8081,
        "port of the first proxy (gRPC, RocketMQ 5 clients); each further one is 1 above (0: a free one)",
        check=between(0, 65535),
    )
    proxies: int = option(
        1, f"number of proxies, 0 to {PROXIES_MAX}; each is its own process", check=between(0, PROXIES_MAX)
    )
    cluster: str = option("DefaultCluster", "name of the cluster the brokers belong to")
    attach: str = option(
        "",
        "name servers of another cluster, which the dashboard manages instead of local ones: host:port;host:port",
    )
    attach_account: str = option(
        "", "file with the accessKey and secretKey that the dashboard signs with there", check=absolute_path
    )
    attach_trust: str = option(
        "", "authorities (PEM) that signed that cluster's certificates; empty: no TLS to it", check=absolute_path
    )
    accounts: bool = option(False, "clients need an account (RocketMQ's ACL); accounts are kept in the data folder")
    allow_open_network: bool = option(False, "bind to more than loopback although brokers require no account")
    tls_cert: str = option(
        "",
        "certificate chain (PEM) of dashboard, name server and brokers; with it they accept TLS too",
        check=absolute_path,
    )
    tls_key: str = option("", "private key of tls_cert (PEM); empty: it is in the same file", check=absolute_path)
    tls_trust: str = option(
        "", "authorities (PEM) that signed tls_cert and clients' certificates; empty: tls_cert", check=absolute_path
    )
    tls_mode: str = option(
        "",
        "permissive: TLS and plain connections on one port; enforcing: TLS only",
        check=one_of("permissive", "enforcing", "disabled", unshown=("",)),
    )
    tls_client_auth: str = option(
        "none",
        "request a certificate of clients: none, optional or require",
        check=one_of("none", "optional", "require"),
    )
    allowed_hosts: str = option("", "further host names of the dashboard, separated by commas")
    trusted_proxies: str = option(
        "", "addresses and networks of reverse proxies in front of the dashboard, separated by commas", check=networks
    )
    proxy_headers: str = option(
        "x-forwarded",
        "headers that those proxies set: x-forwarded (-for, -proto, -host) or forwarded",
        check=one_of(X_FORWARDED, FORWARDED),
    )
    alarm_networks: str = option(
        "",
        "private addresses and networks that alerts can be sent to, separated by commas",
        check=networks,
    )
    oidc_issuer: str = option("", "OpenID Connect provider for sign-in, by its issuer URL; empty: none")
    oidc_client_id: str = option("", "the dashboard's client id at that provider")
    oidc_client_secret_file: str = option(
        "",
        "file with its secret; empty: the variable GANTRY_OIDC_CLIENT_SECRET, or a public client without one",
        check=absolute_path,
    )
    oidc_name: str = option("", "what the button calls the provider; empty: its host")
    oidc_scope: str = option("openid profile", "scopes that are asked for; openid is one of them")
    oidc_user_claim: str = option("preferred_username", "claim with the name of the account")
    oidc_role_claim: str = option("groups", "claim with groups or roles; a.b looks into an object")
    oidc_roles: str = option(
        "", "roles by that claim's values: VALUE=ROLE or VALUE=ROLE:PREFIX PREFIX, separated by semicolons"
    )
    oidc_others: str = option("refuse", "users without such a role: refuse, or reader (can read everything)")
    oidc_trust: str = option(
        "", "authorities (PEM) that signed the provider's certificate; empty: the machine's", check=absolute_path
    )
    oidc_networks: str = option(
        "",
        "private addresses and networks of the provider's hosts other than the issuer's, separated by commas",
        check=networks,
    )
    database_url: str = option(
        "",
        "PostgreSQL for the dashboard's tables: postgresql://user@host:5432/name; empty: SQLite in the data folder",
        is_secret=True,
        check=url(*POSTGRESQL),
    )
    channel_layer_url: str = option(
        "",
        "Redis that carries live pages: redis://host:6379/0; empty: the web process's memory",
        is_secret=True,
        check=url(*REDIS),
    )
    body_schemas: str = option(
        "",
        "folder with Avro and Protobuf schemas by which the dashboard decodes bodies; empty: none",
        check=absolute_path,
    )
    body_schema_registry: str = option(
        "",
        "schema registry (as Confluent's) that is asked for schemas of bodies, by its http(s) URL; empty: none",
        check=url("http", "https"),
    )
    body_schema_registry_secret_file: str = option(
        "", "file with NAME:PASSWORD for it; empty: without an account", check=absolute_path
    )
    alert_days: int = option(30, "days for which ended alerts and their deliveries are kept", check=between(1, 3650))
    http_hsts_s: int = option(
        0,
        "seconds for which browsers use https only, on every port of the host (HSTS); 0: off",
        check=between(0, 10 * 365 * 86400),
    )
    http_body_bytes_max: int = option(
        6 << 20,
        "largest body of a request to the dashboard, in bytes (64 KiB before log-in)",
        check=between(64 << 10, 1 << 30),
    )
    http_connections_max: int = option(
        1024,
        "connections to the dashboard in all (fewer where the limit of open files is low)",
        check=between(16, 1 << 20),
    )
    http_connections_per_address_max: int = option(
        256,
        "connections to the dashboard from one address, beside live pages of signed-in accounts (400 an account)",
        check=between(16, 1 << 20),
    )
    fast_path: str = option(
        "auto",
        "brokers' compiled fast path: auto (used if it is there), on (a broker does not start without it) or off",
        check=one_of("auto", "on", "off", unshown=("sanitize",)),
    )
    install_reports: bool = option(True, "install the report stack (Spark) in the background when it is missing")
    spark_master: str = option("local[2]", "where reports run: local[N], or the URL of a Spark cluster")
    java_home: str = option("", "Java for reports; empty: JAVA_HOME, java on the path, or the report stack's own")
    report_timeout_s: float = option(
        900.0, "seconds after which a report run is killed; what it has read is kept", check=between(1, 30 * 86400)
    )
    report_memory: str = option("1g", "heap of a report run's JVM, as Java writes it")
    report_priority: str = option(
        "low",
        "what runs get of the processor beside brokers: low, or idle (only what nothing else wants)",
        check=one_of("low", "idle"),
    )
    report_cores: int = option(
        0, "cores of this machine that a run may use, Java included; 0: all but one", check=between(0, 4096)
    )
    report_pause_ms: float = option(
        50.0,
        "milliseconds that a request waits in a broker's lane, from which runs pause their reading; 0: never",
        check=between(0, 3_600_000),
    )
    report_conf: str = option("", "further settings of Spark for report runs: name=value, separated by commas")
    report_lake: str = option(
        "",
        "where the reports' lake is: a folder, s3://BUCKET/PREFIX or hdfs://HOST:PORT/FOLDER; empty: the data folder",
        check=_lake,
    )
    report_lake_days: float = option(0.0, "days that the reports' lake keeps; 0: for ever", check=between(0, 36525))
    report_lake_bytes: int = option(
        0, "bytes that the reports' lake keeps, of all brokers, the newest; 0: all", check=between(0, 1 << 60)
    )
    stop_grace_s: float = option(20.0, "seconds for a process to stop before it is killed", check=between(0, 600))
    web_hang_s: float = option(
        10.0, "seconds without a heartbeat before the web process is killed and started again", check=between(1, 3600)
    )
    worker_hang_s: float = option(
        10.0,
        "seconds without any answer before a broker or name server is killed and started again; 0: never",
        check=between(1, 3600, or_zero=True),
    )
    user: str = option("", "account to run as when started as root (a name or a number)")
    allow_root: bool = option(False, "run as root, where there is no other account")
    log_level: str = option("INFO", "DEBUG, INFO, WARNING or ERROR", check=_log_level)

    def __post_init__(self) -> None:
        for name, item in _FIELDS.items():
            object.__setattr__(self, name, item.metadata["check"](name, getattr(self, name)))
        if self.broker_port and any(broker.port >= 65535 for broker in self.broker_processes):
            raise ConfigError(f"broker_port={self.broker_port}: no room for {self.brokers} brokers 100 ports apart")
        if self.slaves and self.replicas > 1:
            raise ConfigError("replicas are a master and its slaves already: leave out slaves")
        if self.proxy_port + self.proxies > 65536:
            raise ConfigError(f"proxy_port={self.proxy_port}: no room for {self.proxies} proxies behind it")
        if not self.tls_cert and (self.tls_key or self.tls_trust or self.tls_mode in ("permissive", "enforcing")):
            raise ConfigError("TLS needs a certificate: name one with tls_cert (`gantry tls create FOLDER` makes one)")
        check_attached(self)
        check_sign_in(self)
        if not self.advertise:
            object.__setattr__(self, "advertise", _address_to_advertise(self.bind))

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The networks of `trusted_proxies`."""
        return networks_of(self.trusted_proxies)

    @property
    def alarm_networks_allowed(self) -> tuple[Network, ...]:
        """The networks of `alarm_networks`."""
        return networks_of(self.alarm_networks)

    @property
    def oidc_networks_allowed(self) -> tuple[Network, ...]:
        """The networks of `oidc_networks`."""
        return networks_of(self.oidc_networks)

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
    def etcd_folder(self) -> Path:
        return self.data / "etcd"

    @property
    def proxies_folder(self) -> Path:
        return self.data / "proxies"

    @property
    def reports_folder(self) -> Path:
        return self.data / "reports"

    @property
    def logs_folder(self) -> Path:
        return self.data / "logs"

    # ---- who listens where

    @property
    def proxy_processes(self) -> tuple[tuple[str, int], ...]:
        """Name and port of each proxy; none where the dashboard is attached to another cluster."""
        if self.attach:
            return ()
        return tuple(("proxy" if n == 0 else f"proxy-{n + 1}", self.proxy_port + n) for n in range(self.proxies))

    @property
    def proxy_endpoints(self) -> tuple[str, ...]:
        """host:port of each proxy, for clients of RocketMQ 5."""
        return tuple(join_address(self.advertise, port) for _, port in self.proxy_processes)

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
        return () if self.attach else broker_processes(self.brokers, self.slaves_each, self.broker_port)

    @property
    def slaves_each(self) -> int:
        """Processes beside each broker that start as its slaves."""
        return max(self.slaves, self.replicas - 1)

    def broker_address_of(self, broker: BrokerProcess) -> str:
        return join_address(self.advertise, broker.port)

    @property
    def is_loopback(self) -> bool:
        return is_loopback_name(self.bind)

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
        return cls(**merged(_FIELDS, arguments or {}, environment, config_file, working_folder or Path.cwd()))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> ApplianceConfig:
        """Read the settings that `gantry up` has exported for its processes. Unknown variables are ignored here."""
        return cls(**from_variables(_FIELDS, os.environ if environment is None else environment))

    def to_environment(self) -> dict[str, str]:
        """The variables from which `from_environment` builds an equal object."""
        return {variable_of(name): as_text(getattr(self, name)) for name in _FIELDS}


_FIELDS = {item.name: item for item in dataclasses.fields(ApplianceConfig)}


def describe(name: str) -> str:
    """The text about one setting, with its default."""
    item = _FIELDS[name]
    shown = f"data/ in a checkout, else {HOME_DATA}" if name == "data" else item.default
    return f"{item.metadata['doc']} (default: {shown})" if shown != "" else item.metadata["doc"]


def join_address(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address_to_advertise(bind: str) -> str:
    """An address that clients can connect to; for a wildcard bind this host's own address, else loopback."""
    if bind not in ("0.0.0.0", "::"):
        return bind
    from appliance.settings.roles import outward_address  # here, because it imports the workers' settings

    return outward_address()
