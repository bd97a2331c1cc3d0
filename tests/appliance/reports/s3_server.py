"""A place without moving: pyarrow's file system over a folder, and a real server of S3. Fixtures, for conftest.py.

The server is rclone's, in memory: Go compiles it with what else it compiles for tests. With --long it is Versity's
gateway over a folder, whose hundreds of modules take Go 190 CPU seconds on a new machine.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.settings.lake_place import StoreAddress
from tests.conftest import missing, require_tool
from tests.interop.build_cache import ToolError, built, digest, tool
from tests.interop.go_client import PURE_GO, QUICK
from tests.suite.long_runs import in_all
from tests.waiting import WITHIN_S, wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "gantry-tests", "AWS_SECRET_ACCESS_KEY": "a-secret-of-tests"}

SOURCES = Path(__file__).parent / "s3"
GATEWAY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The options of an address there."""
    fs = pytest.importorskip("pyarrow.fs", reason="the report stack is not installed")
    require_tool("go", "it builds a server of S3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("s3")
    try:
        command = in_all(_in_memory, long=_over_a_folder)(f"127.0.0.1:{port}", folder)
    except ToolError as exc:
        missing("the server of S3", str(exc))
        raise
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as server,
    ):
        options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        try:

            def is_there() -> bool:
                made, _ = fs.FileSystem.from_uri(
                    f"s3://{KEYS['AWS_ACCESS_KEY_ID']}:{KEYS['AWS_SECRET_ACCESS_KEY']}@lake?{options}"
                    "&allow_bucket_creation=true"
                )
                try:
                    made.create_dir("lake")
                except OSError:
                    return False
                return True

            wait_until(is_there)
            yield options
        finally:
            server.terminate()
            server.wait(WITHIN_S)


def _in_memory(address: str, folder: Path) -> list[str]:
    files = sorted(SOURCES.iterdir())

    def build(work: Path) -> None:
        for file in files:
            shutil.copy(file, work)
        tool(
            ["go", "build", "-mod=readonly", "-buildvcs=false", *QUICK, "-o", "server", "."],
            cwd=work,
            environment=PURE_GO,
        )

    return [str(built(f"s3-{digest(files)}", build) / "server"), address, *KEYS.values()]


def _over_a_folder(address: str, folder: Path) -> list[str]:
    install = ["go", "install", *QUICK, "-buildvcs=false", GATEWAY]

    def build(work: Path) -> None:
        tool(install, environment={"GOBIN": str(work), "GOFLAGS": "-mod=mod"})

    program = built(f"s3-{digest([], str(install))}", build) / "versitygw"
    for name in ("buckets", "metadata"):
        (folder / name).mkdir()
    account = ["--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]]
    place = ["posix", "--sidecar", str(folder / "metadata"), str(folder / "buckets")]
    return [str(program), *account, "--port", address, *place]


@pytest.fixture(params=["file", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreAddress:
    """A new place."""
    if request.param == "file":
        return StoreAddress(f"file://{tmp_path}/place")
    options = request.getfixturevalue("s3")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return StoreAddress(f"s3://lake/{tmp_path.parent.name}-{tmp_path.name}", options)
