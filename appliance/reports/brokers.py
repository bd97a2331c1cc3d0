"""Which brokers a data folder holds, and where each one's commit log is: read from their properties files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROPERTIES_FILE = "broker.properties"


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """One broker's name and commit-log folders (several when RocketMQ's multi-path option is used)."""

    broker_name: str
    commit_log_folders: tuple[Path, ...]

    @property
    def has_log(self) -> bool:
        """Whether the broker has ever run."""
        return any(folder.is_dir() for folder in self.commit_log_folders)


def brokers_in(data: Path) -> list[BrokerFolder]:
    """The brokers of DATA/brokers, in order of their folders."""
    found = sorted((data / "brokers").glob(f"*/{PROPERTIES_FILE}"))
    return [_broker_of(path) for path in found]


def _broker_of(path: Path) -> BrokerFolder:
    properties = read_properties(path)
    folder = path.parent
    root = folder / properties.get("storePathRootDir", "store")  # an absolute value replaces the folder
    log = properties.get("storePathCommitLog") or str(root / "commitlog")
    return BrokerFolder(
        properties.get("brokerName", folder.name),
        tuple(folder / part.strip() for part in log.split(",") if part.strip()),
    )


def read_properties(path: Path) -> dict[str, str]:
    """The key=value lines, as RocketMQ writes them (no escapes, # and ! begin a comment)."""
    pairs = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith(("#", "!")):
            pairs[key.strip()] = value.strip()
    return pairs
