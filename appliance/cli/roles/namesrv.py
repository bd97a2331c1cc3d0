"""Run one name server. FILE is RocketMQ's namesrv.conf (a properties file); without it the defaults apply."""

from __future__ import annotations

import argparse

from appliance.cli.roles.worker import add_options, open_log, run_worker, settings_file
from appliance.settings.live import shown_text
from appliance.settings.loader import load_namesrv_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "RocketMQ properties file", asks_namesrv=False)


def run(arguments: argparse.Namespace) -> int:
    config, ignored = load_namesrv_config(arguments.config)
    if arguments.print_config:
        print(shown_text([config]), end="")
        return 0
    from appliance.namesrv.controller import NamesrvController

    open_log(arguments.log_level, ignored)
    controller = NamesrvController(config, file=settings_file(arguments.config), ignored=ignored)
    return run_worker(controller, "namesrv", config.bind_address, {"name": "namesrv"})
