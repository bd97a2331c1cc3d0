"""Beside a field: the value that is kept, or an error that names the setting and says what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.settings.checks import Check, absolute_path, any_value, between, networks, one_of
from appliance.settings.service_urls import POSTGRESQL, url
from gantrymq.errors import ConfigError


@pytest.mark.parametrize(
    ("check", "value", "kept"),
    [
        (any_value, "anything", "anything"),
        (between(1, 3), 3, 3),
        (between(1, 3, or_zero=True), 0, 0),
        (one_of("on", "off", unshown=("",)), "", ""),
        (absolute_path, "", ""),
        (absolute_path, "ca.pem", str(Path.cwd() / "ca.pem")),
        (networks, "10.0.0.7, 10.1.0.0/16", "10.0.0.7, 10.1.0.0/16"),
        (url(*POSTGRESQL), "postgresql://db/gantry", "postgresql://db/gantry"),
        (url(*POSTGRESQL), "", ""),
    ],
)
def test_what_is_right_is_kept(check: Check, value: Any, kept: Any) -> None:
    assert check("name", value) == kept


@pytest.mark.parametrize(
    ("check", "value", "sentence"),
    [
        (between(1, 3), 0, "name=0: use a number from 1 to 3"),
        (between(1, 3, or_zero=True), 4, "name=4: use a number from 1 to 3"),
        (one_of("on", "off", "auto", unshown=("x",)), "onn", "name=onn: use on, off or auto"),
        (one_of("delta"), "parquet", "name=parquet: use delta"),
        (networks, "10.0.0.0/33", "such as 10.0.0.7 or 10.0.0.0/24"),
        (url(*POSTGRESQL), "mysql://user:secret@db", "name: the address has to begin with postgresql://"),
    ],
)
def test_what_is_wrong_is_refused_with_what_would_be_right(check: Check, value: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check("name", value)
    assert sentence in str(caught.value) and "secret" not in str(caught.value)
