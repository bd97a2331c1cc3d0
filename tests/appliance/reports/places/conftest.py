"""A place without moving: pyarrow's file system over a folder, and a real server of S3 where one is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import WITHIN_S, wait_until

pytest.importorskip("pyarrow", reason="the report stack is not installed")

from pyarrow import fs

from appliance.settings.lake_place import StoreAddress

KEYS = {"AWS_ACCESS_KEY_ID": "gantry-tests", "AWS_SECRET_ACCESS_KEY": "a-secret-of-tests"}


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The options of an address there."""
    program = shutil.which("minio")
    if program is None:
        pytest.skip("minio is not on the path")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("minio")
    variables = os.environ | {"MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"], "MINIO_BROWSER": "off"}
    variables["MINIO_ROOT_PASSWORD"] = KEYS["AWS_SECRET_ACCESS_KEY"]
    command = [program, "server", str(folder), "--address", f"127.0.0.1:{port}"]
    with (
        (folder.parent / "minio.log").open("wb") as log,
        subprocess.Popen(command, env=variables, stdout=log) as server,
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


@pytest.fixture(params=["file", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreAddress:
    """A new place."""
    if request.param == "file":
        return StoreAddress(f"file://{tmp_path}/place")
    options = request.getfixturevalue("s3")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return StoreAddress(f"s3://lake/{tmp_path.parent.name}-{tmp_path.name}", options)
