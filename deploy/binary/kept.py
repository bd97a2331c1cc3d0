"""A folder for what was fetched and made, each under the hash of what it is made of."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

OWN_SOURCES = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gantrymq-build"


@dataclass(frozen=True)
class Kept:
    """Made once, found afterwards; one build at a time makes things, others wait for it."""

    folder: Path

    def made(self, name: str, of: str, make: Callable[[Path], None]) -> Path:
        """The file or folder `name`, which `make` writes at the path it is given unless it is there."""
        found = self.folder / f"{name}-{of[:16]}"
        if found.exists():
            return found
        started = time.monotonic()
        making = self.folder / f"{name}.making"
        remove(making)
        make(making)
        making.rename(found)
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
        return found

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def hash_of(*parts: str | bytes | Path) -> str:
    """The hash of texts and of files' contents, in order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)} ".encode() + content)
    return digest.hexdigest()


def hash_of_modules(*names: str) -> str:
    """The hash of modules of this package: what they make is made anew when they change."""
    return hash_of(*(OWN_SOURCES / f"{name}.py" for name in names))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
