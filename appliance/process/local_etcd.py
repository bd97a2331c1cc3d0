"""The member of etcd that `gantry up --replicas 3` runs: which program it is, and where it listens.

DATA/etcd/node.json   program and ports, as the last start chose them
DATA/etcd/data/       etcd's own files; what brokers have on record is here
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import orjson

from gantrymq.errors import ConfigError

NODE_FILE = "node.json"
HOST = "127.0.0.1"  # etcd asks for no account here, so no other machine may reach it


@dataclass(frozen=True, slots=True)
class LocalEtcd:
    """program: path. client_port, peer_port: on HOST; the second is opened by etcd although it has no peers."""

    program: str
    client_port: int
    peer_port: int

    @property
    def address(self) -> str:
        return f"{HOST}:{self.client_port}"

    @property
    def url(self) -> str:
        """Where brokers ask it."""
        return f"http://{self.address}"

    @property
    def peer_url(self) -> str:
        return f"http://{HOST}:{self.peer_port}"

    def to_json(self) -> str:
        return orjson.dumps(dataclasses.asdict(self), option=orjson.OPT_INDENT_2).decode()


def local_etcd(folder: Path) -> LocalEtcd | None:
    """What stands in the folder; None: no start has found etcd. ConfigError for what is not understood."""
    try:
        document = orjson.loads((folder / NODE_FILE).read_bytes())
        return LocalEtcd(str(document["program"]), int(document["client_port"]), int(document["peer_port"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as exc:
        raise ConfigError(f"{folder / NODE_FILE} can't be read ({exc}): delete it, a start writes it again") from exc
