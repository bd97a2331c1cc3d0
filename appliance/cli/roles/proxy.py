"""Run one proxy: gRPC for RocketMQ 5 clients. FILE is a properties file; without it the defaults apply."""

from __future__ import annotations

import argparse

from appliance.cli.roles.worker import add_options, open_log, run_worker
from appliance.settings.live import shown_text
from appliance.settings.loader import load_proxy_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "properties file")


def run(arguments: argparse.Namespace) -> int:
    overrides = {"namesrvAddr": arguments.namesrv} if arguments.namesrv else {}
    config, ignored = load_proxy_config(arguments.config, overrides)
    if arguments.print_config:
        print(shown_text([config]), end="")
        return 0
    from appliance.proxy.controller import ProxyController

    open_log(arguments.log_level, ignored)
    return run_worker(ProxyController(config), "proxy", config.bind_address, {"namesrv": config.namesrv_addresses})
