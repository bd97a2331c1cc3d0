"""The brokers of a data folder with their commit-log folders, read from their properties files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.loader import read_properties
from store.base.config import MessageStoreConfig

PROPERTIES_FILE = "broker.properties"


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """One broker's name, store folder and commit-log folders (several with RocketMQ's multi-path options)."""

    broker_name: str
    store_folder: Path
    commit_log_folders: tuple[Path, ...]

    @property
    def has_log(self) -> bool:
        """Whether the broker has ever run."""
        return any(folder.is_dir() for folder in self.commit_log_folders)


def brokers_in(data: Path) -> list[BrokerFolder]:
    """The brokers of DATA/brokers, in order of their folders. Slaves have no messages of their own."""
    found = sorted((data / "brokers").glob(f"*/{PROPERTIES_FILE}"))
    settings = [(path, read_properties(path.read_text(encoding="utf-8"))) for path in found]
    return [_broker_of(path, properties) for path, properties in settings if properties.get("brokerRole") != "SLAVE"]


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
    )
