"""Run one name server. FILE is RocketMQ's namesrv.conf (a properties file); without it the defaults apply."""

from __future__ import annotations

import argparse
from pathlib import Path

from appliance.cli.roles.worker import open_log, run_worker, settings_file
from appliance.settings.live import shown_text
from appliance.settings.loader import load_namesrv_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="RocketMQ properties file")
    parser.add_argument("-p", "--print-config", action="store_true", help="print the effective settings and exit")
    parser.add_argument("--log-level", default="INFO", help="DEBUG, INFO, WARNING or ERROR (default: INFO)")


def run(arguments: argparse.Namespace) -> int:
    config, ignored = load_namesrv_config(arguments.config)
    if arguments.print_config:
        print(shown_text([config]), end="")
        return 0
    from appliance.namesrv.controller import NamesrvController

    open_log(arguments.log_level, ignored)
    controller = NamesrvController(config, file=settings_file(arguments.config), ignored=ignored)
    return run_worker(controller, "namesrv", config.bind_address, {"name": "namesrv"})
