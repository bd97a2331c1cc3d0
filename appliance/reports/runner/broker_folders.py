"""The brokers of a data folder with their commit-log folders, read from their properties files.

A broker with slaves has several folders, one of which is the master's: the one whose settings say so, or that was
promoted since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from appliance.reports.runner.standing import Standing, read_standing
from appliance.settings.loader import read_properties
from appliance.settings.roles import BrokerConfig
from store.base.config import MessageStoreConfig

PROPERTIES_FILE = "broker.properties"


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """One broker's name, store folder and commit-log folders (several with RocketMQ's multi-path options).

    reserved_hours, full_percent: the age at which a file of the log may go, and how full a disk is when old ones must.
    copies: the other folders of the same broker: its slaves, and its masters of before.
    """

    broker_name: str
    store_folder: Path
    commit_log_folders: tuple[Path, ...]
    standing: Standing = Standing()
    reserved_hours: int = MessageStoreConfig.file_reserved_hours
    full_percent: int = MessageStoreConfig.disk_max_used_percent
    copies: tuple[BrokerFolder, ...] = ()
    cluster_name: str = ""

    @property
    def has_log(self) -> bool:
        """Whether the broker has ever run."""
        return any(folder.is_dir() for folder in self.commit_log_folders)


def brokers_in(data: Path) -> list[BrokerFolder]:
    """The brokers of DATA/brokers that have a master there, in order of their folders."""
    same: dict[str, list[BrokerFolder]] = {}
    for path in sorted((data / "brokers").glob(f"*/{PROPERTIES_FILE}")):
        broker = _broker_of(path, read_properties(path.read_text(encoding="utf-8")))
        same.setdefault(broker.broker_name, []).append(broker)
    return [master for folders in same.values() for master in _masters(folders)]


def _masters(folders: list[BrokerFolder]) -> list[BrokerFolder]:
    """Of one broker's folders that of the latest epoch: a lost master does not know that it is no more."""
    masters = [folder for folder in folders if not folder.standing.is_slave]
    if any(folder.standing.current for folder in masters):
        masters = [max(masters, key=lambda folder: folder.standing.current)]
    return [replace(master, copies=tuple(folder for folder in folders if folder not in masters)) for master in masters]


def _broker_of(path: Path, properties: Mapping[str, str]) -> BrokerFolder:
    folder = path.parent  # relative paths are relative to this folder
    commit_log = properties.get("storePathCommitLog")
    store = MessageStoreConfig(
        root=folder / Path(properties.get("storePathRootDir", "store")).expanduser(),
        commit_log=Path(commit_log) if commit_log else None,
        read_only_commit_log=properties.get("readOnlyCommitLogStorePaths", ""),
    )
    return BrokerFolder(
        properties.get("brokerName", folder.name),
        folder / store.root,
        tuple(folder / part for part in store.commit_log_folders),
        read_standing(folder / store.root, properties),
        _number(properties, "fileReservedTime", store.file_reserved_hours),
        _number(properties, "diskMaxUsedSpaceRatio", store.disk_max_used_percent),
        cluster_name=properties.get("brokerClusterName", BrokerConfig.cluster_name),
    )


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting; its default where the file has no number: the broker refuses to start with it, not the report."""
    text = properties.get(name, "").strip()
    return int(text) if text.isascii() and text.isdecimal() else default
