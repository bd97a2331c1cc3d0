"""A folder as a compressed archive: `python archive.py FOLDER OUTPUT END`.

Run by the tree's interpreter, which has zstd in the version of the lock. The same content gives the same bytes: sorted,
without times, owners and other modes.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

LEVEL = 12  # 19 takes ten times as long for a tenth of the size
WINDOW_LOG = 27  # 128 MiB: much of what is alike lies far apart
WORKERS = 2  # how it is cut depends on it being more than 0, not on the number


def members(folder: Path) -> Iterator[tuple[str, Path]]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        for name in sorted([*names, *links, *folders]):
            path = Path(place) / name
            yield path.relative_to(folder).as_posix(), path


def header(name: str, path: Path) -> tarfile.TarInfo:
    item = tarfile.TarInfo(name)
    if path.is_symlink():
        item.type, item.linkname = tarfile.SYMTYPE, str(path.readlink())
    elif path.is_dir():
        item.type, item.mode = tarfile.DIRTYPE, 0o755
    else:
        item.size, item.mode = path.stat().st_size, 0o755 if os.access(path, os.X_OK) else 0o644
    return item


def write(folder: Path, output: Path, *, is_last: bool) -> None:
    """One frame. Archives that are not the last one have no end, so that frames in a row are one archive."""
    from compression.zstd import CompressionParameter, ZstdFile

    options = {
        CompressionParameter.compression_level: LEVEL,
        CompressionParameter.window_log: WINDOW_LOG,
        CompressionParameter.enable_long_distance_matching: 1,
        CompressionParameter.nb_workers: WORKERS,
    }
    with ZstdFile(output, "w", options=options) as compressed:
        for name, path in members(folder):
            item = header(name, path)
            compressed.write(item.tobuf(tarfile.PAX_FORMAT))
            if item.isreg():
                content = path.read_bytes()
                compressed.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))
        if is_last:
            compressed.write(bytes(2 * tarfile.BLOCKSIZE))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]), is_last=sys.argv[3] == "end")
