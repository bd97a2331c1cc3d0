"""Run one broker. FILE is RocketMQ's broker.conf (a properties file); without it the defaults apply."""

from __future__ import annotations

import argparse

from appliance.cli.roles.worker import add_options, open_log, run_worker, settings_file
from appliance.settings.live import shown_text
from appliance.settings.loader import load_broker_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "RocketMQ properties file")


def run(arguments: argparse.Namespace) -> int:
    overrides = {"namesrvAddr": arguments.namesrv} if arguments.namesrv else {}
    config, store_config, ignored = load_broker_config(arguments.config, overrides)
    if arguments.print_config:
        print(shown_text([config, store_config]), end="")
        return 0
    from appliance.broker.life import BrokerLife

    open_log(arguments.log_level, ignored)
    broker = BrokerLife(config, store_config, file=settings_file(arguments.config), ignored=ignored)
    facts = {
        "name": config.broker_name,
        "namesrv": config.namesrv_addresses,
        "fast_path": str(broker.controller.fast_path_status),
    }
    return run_worker(broker, "broker", config.bind_address, facts)
