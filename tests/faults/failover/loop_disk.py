"""A disk of its own for a folder: a file system in a file, to be filled, and frozen as a host's storage freezes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.faults.kit.small_disk import SmallDisk, at_the_end

SIZE_BYTES = 512 << 20


class LoopDisk(SmallDisk):
    """Mounted at `path`. What writes to it while it is frozen waits."""

    is_frozen = False

    def freeze(self) -> None:
        subprocess.run(["fsfreeze", "--freeze", self.path], check=True)
        self.is_frozen = True

    def thaw(self) -> None:
        if self.is_frozen:
            subprocess.run(["fsfreeze", "--unfreeze", self.path], check=True)
            self.is_frozen = False


@contextlib.contextmanager
def loop_disk(path: Path) -> Iterator[LoopDisk | None]:
    """Mount one; None where that may not be done: then the folder lies where all else does."""
    path.mkdir(parents=True)
    image = path.parent / f"{path.name}.img"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    freed = f"fsfreeze --unfreeze {path}; umount --lazy {path}; rm -f {image}"
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        image.unlink()
        yield None
        return
    with at_the_end(["sh", "-c", f"{freed}; true"]):
        path.chmod(0o777)
        yield LoopDisk(path)
