"""The data folder: whether it is free, can be written, has space and a fast disk, and is of this version."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from appliance.bench.fsync_rate import fsyncs_per_s
from appliance.cli.checks.finding import Finding, good, warning
from appliance.process import formats
from appliance.process.data_folder import LOCK_NAME, DataFolderInUse, DataFolderLock
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import load_broker_config
from gantrymq.byte_size import readable
from gantrymq.errors import ConfigError
from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import disk_space

FREE_BYTES_BESIDE_LOG = 1 << 30  # room for database, index and queues in addition to the first commit-log file
FREE_BYTES_COMFORTABLE = 10 << 30
DISK_S = 1.0
UPGRADE_UNDER_WAY = "before-upgrade/under-way"  # deploy/upgrade: the command that ends it
SLOW_FSYNCS_PER_S = 50  # below it SYNC_FLUSH and clean stops are slow


def check_lock(config: ApplianceConfig) -> Iterator[Finding]:
    lock = DataFolderLock(config.data)
    try:
        (config.data / LOCK_NAME).stat()  # without one no process holds it; one that root makes here would be root's
        lock.acquire()
    except DataFolderInUse as exc:
        yield Finding(f"{exc}.")
    except OSError:
        return  # if it is not just missing, check_folder reports it with a fix
    else:
        lock.release()


def check_formats(config: ApplianceConfig) -> Iterator[Finding]:
    """Folders of a newer version, or half of one. It can start without its reports, but not without its stores."""
    with contextlib.suppress(OSError):
        if (
            command := (config.data / UPGRADE_UNDER_WAY).read_text(encoding="utf-8", errors="replace").strip()
        ):  # else nothing is begun
            yield Finding(f"An upgrade of {config.data} was interrupted; in the checkout this ends it: `{command}`.")
    stores = [(config.brokers_folder / broker.name / "store", formats.STORE) for broker in config.broker_processes]
    for folder, known in [(config.data, formats.DATA), *stores, (config.reports_folder, formats.REPORTS)]:
        if why := formats.why_refused(folder, known):
            yield Finding(f"{why}.", is_fatal=known is not formats.REPORTS)


def check_folder(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether it can be written, and then whether there is space."""
    folder = config.data
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as exc:
        yield Finding(
            f"The data folder {folder} can't be written ({exc.strerror}): make it writable with "
            f"`sudo install -d -m 700 -o {_user()} {shlex.quote(str(folder))}`, or name another one with --data."
        )
    else:
        yield from check_space(folder, store_settings(config))


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


def check_space(folder: Path, stores: list[MessageStoreConfig]) -> Iterator[Finding]:
    """Check that brokers with these settings have enough space on the disk of `folder`, by the brokers' own rules."""
    if not stores:
        return
    space = disk_space(folder)
    free = space.total_bytes - space.used_bytes
    needed = FREE_BYTES_BESIDE_LOG + max(store.commit_log_file_bytes for store in stores)
    forced, refused = min(store.forcibly_ratio for store in stores), min(store.warning_ratio for store in stores)
    if free < needed:
        yield Finding(
            f"Only {readable(free)} are free at {folder}, but the start needs {readable(needed)}: "
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
            f"Only {readable(free)} are free at {folder}: watch the disk on the dashboard's Overview.", is_fatal=False
        )


def check_disk_speed(config: ApplianceConfig) -> Iterator[Finding]:
    """How often a second the disk says that it has kept a write."""
    data = config.data
    if not data.is_dir():
        return
    try:
        rate = fsyncs_per_s(data, DISK_S)
    except OSError as exc:
        yield warning(f"The speed of the disk at {data} could not be measured: {exc.strerror}.")
        return
    if rate < SLOW_FSYNCS_PER_S:
        yield warning(
            f"The disk at {data} keeps {rate:.0f} writes a second: with SYNC_FLUSH a producer waits for each. Use a "
            "faster disk, or ASYNC_FLUSH."
        )
    else:
        yield good(f"The disk at {data} keeps {rate:.0f} writes a second.")


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
