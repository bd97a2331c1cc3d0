"""Where the reports' lake is: what the setting may say, and what it refuses in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.lake_place import StoreAddress, place_of
from gantrymq.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", None),
        ("/mnt/lake", Path("/mnt/lake")),
        ("file:///mnt/lake", Path("/mnt/lake")),
        ("s3://bucket/a/b/", StoreAddress("s3://bucket/a/b")),
        ("s3a://bucket?region=eu-west-1", StoreAddress("s3://bucket", "region=eu-west-1")),
        ("hdfs://namenode:8020/lake", StoreAddress("hdfs://namenode:8020/lake")),
    ],
)
def test_a_place_is_a_folder_or_an_address(text: str, place: Path | StoreAddress | None) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lake", "must be absolute"),
        ("ftp://host/lake", "s3://BUCKET/PREFIX"),
        ("s3:///lake", "s3://BUCKET/PREFIX"),
        ("s3://bucket/lake?password=x", "not an option of it"),
        ("hdfs://host/lake?region=x", "not an option of it"),
        ("s3://key:word-not-shown@bucket/lake", "no keys in the address"),
    ],
)
def test_what_is_no_place_is_refused_without_its_keys(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refusal:
        ApplianceConfig(data=tmp_path, report_lake=text)
    assert "word-not-shown" not in str(refusal.value)
