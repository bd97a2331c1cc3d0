"""The text that `gantry up` prints once everything serves: a table for people, one line for scripts."""

from __future__ import annotations

from appliance.settings.appliance_config import ApplianceConfig, join_address
from appliance.settings.broker_processes import BrokerProcess
from appliance.settings.tls import PERMISSIVE

FROM_FILE = "without a network: --from FILE, see docs/operations/reports.md"
REPORTS = {
    "ready": "ready",
    "installing": "Spark is being installed in the background; everything else is ready",
    "absent": f"not installed; run `gantry install-reports` ({FROM_FILE})",
    "failed": f"the installation failed; run `gantry install-reports` to try again and see why ({FROM_FILE})",
}


def banner(config: ApplianceConfig, *, version: str, token: str | None, reports: str, started_s: float) -> str:
    """Return the whole text. `reports` is the state of the report stack, `started_s` the duration of the start."""
    url = f"{config.http_scheme}://{config.http_address}/"
    rows = [("Dashboard", url)]
    if token is not None:
        rows += [
            ("First visit", f"{url}first-run?token={token}"),
            ("", "(set your password there; the link works once, for 30 minutes)"),
        ]
    if config.attach:
        rows += [("Attached to", f"{config.attach}   (no name server and no broker was started here)")]
    else:
        rows += _own_cluster(config)
    rows += [("Data", f"{config.data}   (logs: {config.logs_folder.name}/)")]
    lines = [f"GantryMQ {version} started in {started_s:.1f} s. Press Ctrl-C to stop it.", ""]
    if not config.attach:
        rows += [("Reports", REPORTS.get(reports, reports))]
    lines += [f"{label:<13}{text}" for label, text in rows]
    if not config.attach:
        lines += ["", "Send a message from Python:", ""]
        lines += [f"    {line}" for line in snippet(config).splitlines()]
    return "\n" + "\n".join(f"  {line}".rstrip() for line in lines) + "\n"


def _own_cluster(config: ApplianceConfig) -> list[tuple[str, str]]:
    rows = [("Name server", f"{config.namesrv_address}   (NAMESRV_ADDR of clients)")]
    rows += [_broker_row(config, broker) for broker in config.broker_processes]
    rows += [
        ("RocketMQ 5", f"{join_address(config.advertise, port)}   (endpoints of gRPC clients)")
        for _, port in config.proxy_processes
    ]
    rows += [("Advertised", f"{config.advertise}   {_reach(config)}")]
    if config.accounts:
        rows += [("Accounts", f"{config.accounts_folder / 'conf' / 'plain_acl.yml'}   (clients need one)")]
    if config.client_tls is not None:
        rows += [("TLS", f"{config.tls_mode or PERMISSIVE}   (clients trust {config.tls_trust or config.tls_cert})")]
    return rows


def _broker_row(config: ApplianceConfig, broker: BrokerProcess) -> tuple[str, str]:
    copies = f", a slave of {broker.broker_name}" if broker.starts_as_slave else ""
    return "Broker", f"{config.broker_address_of(broker)}   {broker.name}{copies}"


def snippet(config: ApplianceConfig) -> str:
    """A program that sends a message to this appliance, with TLS and an account if it needs them."""
    names, arguments, comment = ["Message", "SyncProducer"], [f'"{config.namesrv_address}"'], ""
    if config.accounts:
        names.append("Credentials")
        arguments.append(f'credentials=Credentials.from_file("{config.own_account_file}")')
        comment = "# the appliance's own account is fine for a first try; create one for each application\n"
    if config.client_tls is not None:
        names.append("TlsConfig")
        files = {"trust_cert": config.tls_trust or config.tls_cert}
        if config.tls_client_auth == "require":
            files |= {"cert": config.tls_cert, "key": config.tls_key or config.tls_cert}
        shown = ", ".join(f'{name}="{path}"' for name, path in files.items())
        arguments.append(f"tls=TlsConfig({shown})")
    return f"""\
from gantrymq import {", ".join(sorted(names))}

{comment}with SyncProducer({", ".join(arguments)}) as producer:
    result = producer.send(Message("demo", b"hello", tags="first"))
    print(result.status.name, result.msg_id)
"""


def ready_line(config: ApplianceConfig) -> str:
    """The line that scripts wait for. With several brokers it has the first one; with TLS https= instead of http=.

    Attached to another cluster it names no broker.
    """
    brokers = "".join(f"broker={config.broker_address_of(broker)} " for broker in config.broker_processes[:1])
    return (
        f"GANTRY READY {config.http_scheme}={config.http_address} namesrv={config.namesrv_address} "
        f"{brokers}data={config.data}"
    )


def _reach(config: ApplianceConfig) -> str:
    if config.is_loopback:
        return "(only programs on this machine can connect)"
    return "(programs on other machines can connect)"
