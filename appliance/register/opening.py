"""The register of a broker, as its settings name etcd."""

from __future__ import annotations

from pathlib import Path

from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.http_call import Endpoint
from appliance.register.register import Register
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import ConfigError


def register_of(config: BrokerConfig) -> Register | None:
    """None without etcdEndpoints. Reads the files that the settings name. ConfigError."""
    if not config.etcd_endpoints:
        return None
    client = open_etcd(config.etcd_endpoints, config.etcd_user, config.etcd_password_file, config.etcd_ca_file)
    return Register(client, config.cluster_name, config.broker_name)


def open_etcd(endpoints: str, user: str, password_file: str, ca_file: str) -> EtcdClient:
    """ConfigError for endpoints that are none, and for files that can't be read."""
    if user and not password_file:
        raise ConfigError(f"etcdUser={user}: name the file that holds the password in etcdPasswordFile")

    def read() -> tuple[list[Endpoint], str]:
        return endpoints_of(endpoints, ca_file), _first_line(password_file)

    members, password = read()
    return EtcdClient(members, user=user, password=password, reread=read)


def _first_line(file: str) -> str:
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").partition("\n")[0].strip("\r")
    except (OSError, ValueError) as exc:
        raise ConfigError(f"etcdPasswordFile={file}: {getattr(exc, 'strerror', None) or 'it is not a text'}") from exc
