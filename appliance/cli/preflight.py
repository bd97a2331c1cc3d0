"""Checks before the appliance starts; each problem is one sentence with the exact fix.

A fatal `Finding` prevents the start; the others are printed and the appliance starts. `gantry doctor` has this
list, too.
"""

from __future__ import annotations

import os
import resource
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from appliance.cli.checks.finding import Finding
from appliance.cli.checks.machine import check_certificate, check_clock, check_interpreter, check_memory
from appliance.cli.privileges import ROOT_REFUSED, is_root_refused
from appliance.fast_path.loader import ON, why_missing
from appliance.process import formats
from appliance.process.data_folder import DataFolderInUse, DataFolderLock
from appliance.process.local_etcd import local_etcd
from appliance.reports.errors import BashNotFound, JavaNotFound
from appliance.reports.java import find_java, need_bash
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.broker_processes import REPLICAS, BrokerProcess
from appliance.settings.loader import load_broker_config
from appliance.supervisor.etcd_node import find_etcd
from gantrymq.errors import ConfigError
from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import disk_space

FREE_BYTES_BESIDE_LOG = 1 << 30  # room for database, index and queues in addition to the first commit-log file
FREE_BYTES_COMFORTABLE = 10 << 30
OPEN_FILES_WANTED = 65_536
MAP_COUNT_WANTED = 65_530  # Linux's default; a consume queue is a mapping, so are commit-log and index files


def check_all(config: ApplianceConfig) -> list[Finding]:
    """All findings, in the order in which a person would fix them."""
    in_use = list(check_lock(config))
    if in_use:  # that appliance has the ports, too: one finding is enough
        return in_use
    newer = list(check_formats(config))
    if any(finding.is_fatal for finding in newer):  # a newer version's settings may mean something else as well
        return newer
    return [*newer, *check_machine(config), *check_ports(config)]


def check_machine(config: ApplianceConfig) -> list[Finding]:
    """What can be looked at while an appliance runs, too."""
    return [
        *check_bind(config),
        *check_tls(config),
        *check_certificate(config),
        *(list(check_folder(config.data)) or check_space(config.data, store_settings(config))),
        *check_memory(config),
        *check_clock(),
        *check_interpreter(),
        *check_open_files(),
        *check_map_count(),
        *check_user(config),
        *([] if config.attach else check_java(config)),
        *([] if config.attach else check_fast_path(config)),
        *check_attached(config),
        *check_replicas(config),
    ]


def check_formats(config: ApplianceConfig) -> Iterator[Finding]:
    """Folders of a newer version. The appliance can start without its reports, but not without its stores."""
    stores = [(config.brokers_folder / broker.name / "store", formats.STORE) for broker in config.broker_processes]
    for folder, known in [(config.data, formats.DATA), *stores, (config.reports_folder, formats.REPORTS)]:
        if why := formats.why_refused(folder, known):
            yield Finding(f"{why}.", is_fatal=known is not formats.REPORTS)


def check_bind(config: ApplianceConfig) -> Iterator[Finding]:
    if config.is_loopback:
        return
    if config.attach:
        if not config.http_tls:
            yield Finding(
                f"The dashboard at {config.bind} is served over plain HTTP: give a certificate with --tls-cert.",
                is_fatal=False,
            )
        return
    if config.accounts:
        if not config.tls_cert:
            yield Finding(
                f"Brokers at {config.bind} require accounts, but the traffic of clients and browsers is not encrypted: "
                "give a certificate with --tls-cert.",
                is_fatal=False,
            )
        return
    if not config.allow_open_network:
        yield Finding(
            f"Binding to {config.bind} would let every program that reaches this machine read and write all messages: "
            "use --accounts so that brokers require accounts, or --bind 127.0.0.1, or --allow-open-network on a "
            "network you trust."
        )
        return
    yield Finding(
        f"Every program that can reach {config.bind} can read and write all messages: brokers require no account "
        "(--allow-open-network without --accounts). The dashboard still requires its password"
        f"{'' if config.http_tls else ', but over plain HTTP'}.",
        is_fatal=False,
    )


def check_tls(config: ApplianceConfig) -> Iterator[Finding]:
    """Check the certificates once, before every broker refuses them."""
    if (tls := config.client_tls) is None:
        return
    try:
        tls.context()
    except ConfigError as exc:
        yield Finding(f"TLS can't be used: {exc}.")


def check_attached(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether the account for the other cluster can be read, before the first page asks for it."""
    if config.attach:
        try:
            _ = config.client_credentials
        except ConfigError as exc:
            yield Finding(f"The account for the cluster at {config.attach} can't be used: {exc}.")


def check_replicas(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether etcd can decide which member is the master, and whether it has done so here before.

    Members whose in-sync set is on record in etcd must not go on without it: what they acknowledged then would not
    count in the record, and could be lost at the next start with it.
    """
    if config.attach:
        return
    has_record = local_etcd(config.etcd_folder) is not None
    program = find_etcd() if config.replicas > 1 else None
    if program is None and has_record:
        yield Finding(
            f"The brokers of {config.data} have replicas: start with --replicas {REPLICAS}. To go on without, start so "
            f"once more, run `gantry admin ha remove` for each broker, stop, and delete {config.etcd_folder}."
        )
    elif program is not None and not program.path:
        went_on = (
            f"etcd has the brokers' record in {config.etcd_folder}, and can't be started: {program.why_none}."
            if has_record
            else f"The brokers' masters are not elected: {program.why_none}. Until then an administrator promotes."
        )
        yield Finding(went_on, is_fatal=has_record)


def check_lock(config: ApplianceConfig) -> Iterator[Finding]:
    if not config.data.is_dir():
        return
    lock = DataFolderLock(config.data)
    try:
        lock.acquire()
    except DataFolderInUse as exc:
        yield Finding(f"{exc}.")
    except OSError:
        return  # check_folder reports it with a fix
    else:
        lock.release()


def check_folder(folder: Path) -> Iterator[Finding]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            return
    except OSError as exc:
        yield Finding(
            f"The data folder {folder} can't be written ({exc.strerror}): make it writable with "
            f"`sudo install -d -m 700 -o {_user()} {folder}`, or name another one with --data."
        )


def store_settings(config: ApplianceConfig) -> list[MessageStoreConfig]:
    """The store settings of each broker; the defaults before its first start.

    For an unreadable file too: the broker itself reports that, with line and reason.
    """
    settings = []
    for broker in config.broker_processes:
        path = config.brokers_folder / broker.name / "broker.properties"
        try:
            settings.append(load_broker_config(path if path.exists() else None)[1])
        except (ConfigError, OSError, UnicodeDecodeError):
            settings.append(MessageStoreConfig())
    return settings


def check_space(folder: Path, stores: Sequence[MessageStoreConfig]) -> Iterator[Finding]:
    """Check that brokers with these settings have enough space on the disk of `folder`, by the brokers' own rules."""
    if not stores:
        return
    space = disk_space(folder)
    free = space.total_bytes - space.used_bytes
    needed = FREE_BYTES_BESIDE_LOG + max(store.commit_log_file_bytes for store in stores)
    forced, refused = min(store.forcibly_ratio for store in stores), min(store.warning_ratio for store in stores)
    if free < needed:
        yield Finding(
            f"Only {_gib(free)} are free at {folder}, but the start needs {_gib(needed)}: "
            "free some space, or name a folder on another disk with --data."
        )
    elif space.ratio > forced:
        yield Finding(
            f"The disk of {folder} is {space.ratio:.0%} full: above {forced:.0%} brokers that filled it delete their "
            f"oldest files, above {refused:.0%} they refuse messages; free some space, or name another disk "
            "with --data.",
            is_fatal=False,
        )
    elif free < FREE_BYTES_COMFORTABLE:
        yield Finding(
            f"Only {_gib(free)} are free at {folder}: watch the disk on the dashboard's Overview.", is_fatal=False
        )


def check_ports(config: ApplianceConfig) -> Iterator[Finding]:
    for what, port, option in wanted_ports(config):
        if not is_port_free(config.bind, port):
            owner = _owner_of(port)
            yield Finding(
                f"Port {port} ({what}) is taken{owner}: stop that program, or choose another port with {option} N."
            )


def wanted_ports(config: ApplianceConfig) -> Iterator[tuple[str, int, str]]:
    """(what for, port, option that changes it) of everything that will listen."""
    yield "dashboard", config.http_port, "--http-port"
    if config.attach:
        return
    yield "name server", config.namesrv_port, "--namesrv-port"
    for what, port in broker_ports(config.broker_processes):
        yield what, port, "--broker-port"
    for what, port in config.proxy_processes:
        yield f"{what}, for RocketMQ 5 clients", port, "--proxy-port"


def broker_ports(brokers: Sequence[BrokerProcess]) -> Iterator[tuple[str, int]]:
    """(what for, port) of everything that brokers listen on."""
    for broker in brokers:
        yield broker.name, broker.port
        yield f"{broker.name}, its VIP listener", broker.vip_port
        if broker.ha_port:
            yield f"{broker.name}, for slaves", broker.ha_port


def is_port_free(host: str, port: int) -> bool:
    """Whether a listener could be opened on host:port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def check_open_files() -> Iterator[Finding]:
    """Raise the soft limit as far as allowed; every process of the appliance inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    if reachable < OPEN_FILES_WANTED:
        yield Finding(
            f"A process may open only {reachable} files and connections here: for more, run `ulimit -n "
            f"{OPEN_FILES_WANTED}` before the start (systemd: LimitNOFILE={OPEN_FILES_WANTED}).",
            is_fatal=False,
        )


def check_map_count(path: Path = Path("/proc/sys/vm/max_map_count")) -> Iterator[Finding]:
    try:
        limit = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return  # not Linux: no such limit
    if limit < MAP_COUNT_WANTED:
        yield Finding(
            f"vm.max_map_count is {limit}, so a broker with many queues can't map its files: "
            "raise it with `sudo sysctl -w vm.max_map_count=655360`.",
            is_fatal=False,
        )


def check_user(config: ApplianceConfig) -> Iterator[Finding]:
    if is_root_refused(config):
        yield Finding(ROOT_REFUSED)


def check_java(config: ApplianceConfig) -> Iterator[Finding]:
    """Reports need bash and a Java. The stack brings a Java, so this warns only if that one will not be installed."""
    try:
        need_bash()
    except BashNotFound as exc:
        yield Finding(f"Reports can't be computed: {exc}.", is_fatal=False)
    try:
        find_java(config.reports_folder / "jre", setting=config.java_home or None)
    except JavaNotFound as exc:
        if config.java_home or not config.install_reports:
            yield Finding(f"Reports can't be computed: {exc}.", is_fatal=False)


def check_fast_path(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether it is there is told by brokers and the dashboard; here only whether a start without it is refused."""
    if config.fast_path == ON and (why := why_missing()):
        yield Finding(f"fast_path=on, but the compiled fast path is not there: {why}.")


def _owner_of(port: int) -> str:
    """ " by process 123 (java)", or " by another program" when the system does not tell."""
    import psutil  # only a start that fails needs it

    try:
        listeners = [item for item in psutil.net_connections("tcp") if item.status == psutil.CONN_LISTEN]
        pid = next((item.pid for item in listeners if item.laddr and item.laddr.port == port and item.pid), None)
        return f" by process {pid} ({psutil.Process(pid).name()})" if pid else " by another program"
    except psutil.Error:
        return " by another program"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
