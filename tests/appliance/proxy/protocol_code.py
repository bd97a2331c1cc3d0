"""Makes the code of `appliance/proxy/protocol` from the .proto files there, with the protoc of the lock:

python -m tests.appliance.proxy.protocol_code

The types (.pyi) are for mypy alone, and in no repository: the test of style and types writes them first. Without them
mypy takes anything there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from appliance.proxy import protocol

FOLDER = Path(protocol.__file__).parent
PROTOC = Path(sys.prefix) / "bin" / "protoc"
PACKAGE = "apache/rocketmq/v2"  # as the .proto files import each other


def generated() -> dict[str, str]:
    """Text by file name: a module and its types for each .proto file."""
    with tempfile.TemporaryDirectory() as name:
        texts, out = Path(name) / "texts", Path(name) / "out"
        (texts / PACKAGE).mkdir(parents=True)
        out.mkdir()
        for text in FOLDER.glob("*.proto"):
            (texts / PACKAGE / text.name).write_bytes(text.read_bytes())
        files = sorted(file.relative_to(texts).as_posix() for file in texts.rglob("*.proto"))
        includes = (f"--proto_path={texts}", f"--proto_path={Path(sys.prefix) / 'include'}")
        subprocess.run([PROTOC, *includes, f"--python_out={out}", f"--pyi_out={out}", *files], check=True)
        return {
            file.name: file.read_text(encoding="utf-8").replace(
                f"from {PACKAGE.replace('/', '.')} import", f"from {protocol.__name__} import"
            )
            for file in (out / PACKAGE).iterdir()
        }


def write(suffix: str) -> None:
    """Write those of the files that end so, where they are others now."""
    for name, text in generated().items():
        path = FOLDER / name
        if name.endswith(suffix) and not (path.exists() and path.read_text(encoding="utf-8") == text):
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write("")
