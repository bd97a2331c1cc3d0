"""The list of all checks. Each says its sentence in its own module; here stands who shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Flag, auto

from appliance.cli.checks import folder, machine, network, ports, root, start
from appliance.cli.checks.finding import Finding
from appliance.settings.appliance_config import ApplianceConfig

CheckOf = Callable[[ApplianceConfig], Iterable[Finding]]


class At(Flag):
    """START: `gantry up`, and `gantry doctor` where no appliance runs. RUNNING: `gantry doctor` where one does. DOCTOR:
    `gantry doctor`, what takes long or is nice to know. PAGE: the dashboard."""

    START = auto()
    RUNNING = auto()
    DOCTOR = auto()
    PAGE = auto()


ALWAYS = At.START | At.RUNNING
EVERYWHERE = ALWAYS | At.PAGE
CHECKS: tuple[tuple[CheckOf, At], ...] = (  # in the order in which a person would fix what they find
    (network.check_bind, ALWAYS),
    (network.check_tls, ALWAYS),
    (machine.check_certificate, EVERYWHERE),
    (folder.check_folder, ALWAYS),
    (start.check_memory, At.START),
    (machine.check_free_memory, At.DOCTOR | At.PAGE),
    (machine.check_clock, EVERYWHERE),
    (machine.check_interpreter, EVERYWHERE),
    (machine.check_open_files, EVERYWHERE),
    (machine.check_map_count, EVERYWHERE),
    (root.check_user, At.START),
    (root.check_owner, At.RUNNING),
    (start.check_java, ALWAYS),
    (start.check_fast_path_wanted, ALWAYS),
    (network.check_attached, ALWAYS),
    (start.check_replicas, ALWAYS),
    (ports.check_ports, At.START),
    (machine.check_cores, At.DOCTOR | At.PAGE),
    (machine.check_fast_path, At.DOCTOR | At.PAGE),
    (folder.check_disk_speed, At.DOCTOR),
)


def look(config: ApplianceConfig, at: At) -> list[Finding]:
    """What the checks of one place find."""
    return [finding for check, where in CHECKS if where & at for finding in check(config)]


def before_start(config: ApplianceConfig, at: At = At.START) -> list[Finding]:
    """What `gantry up` looks at."""
    in_use = list(folder.check_lock(config))
    if in_use:  # that appliance has the ports, too: one finding is enough
        return in_use
    newer = list(folder.check_formats(config))
    if any(finding.is_fatal for finding in newer):  # a newer version's settings may mean something else as well
        return newer
    return [*newer, *look(config, at)]
