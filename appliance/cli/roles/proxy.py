"""Run one proxy: gRPC for RocketMQ 5 clients. FILE is a properties file; without it the defaults apply."""

from __future__ import annotations

import argparse
from pathlib import Path

from appliance.cli.roles.worker import open_log, run_worker
from appliance.settings.live import shown_text
from appliance.settings.loader import load_proxy_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="properties file")
    parser.add_argument("-n", "--namesrv", metavar="ADDRESSES", help="host:port;host:port of the name servers")
    parser.add_argument("-p", "--print-config", action="store_true", help="print the effective settings and exit")
    parser.add_argument("--log-level", default="INFO", help="DEBUG, INFO, WARNING or ERROR (default: INFO)")


def run(arguments: argparse.Namespace) -> int:
    overrides = {"namesrvAddr": arguments.namesrv} if arguments.namesrv else {}
    config, ignored = load_proxy_config(arguments.config, overrides)
    if arguments.print_config:
        print(shown_text([config]), end="")
        return 0
    from appliance.proxy.controller import ProxyController

    open_log(arguments.log_level, ignored)
    return run_worker(ProxyController(config), "proxy", config.bind_address, {"namesrv": config.namesrv_addresses})
