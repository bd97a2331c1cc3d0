"""What `gantry up` prints works as it stands there, also with accounts and TLS."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from appliance.acl.own_account import ensure_own_account
from appliance.cli.banner import banner, snippet
from appliance.own_files import ROOT
from appliance.settings.appliance_config import ApplianceConfig
from tests.certificates import authority, server_fields
from tests.harness import serving

TLS_FILES = {"tls_cert": "server.pem", "tls_key": "server.key", "tls_trust": "ca.pem"}


@pytest.mark.parametrize("has_accounts", [False, True], ids=["anybody", "accounts"])
@pytest.mark.parametrize("client_auth", ["", "none", "require"], ids=["plain", "TLS", "mutual TLS"])
async def test_the_printed_program_sends_a_message(has_accounts: bool, client_auth: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": tmp_path, "accounts": has_accounts}
    fields: dict[str, Any] = {}
    if client_auth:
        options |= {name: str(authority() / file) for name, file in TLS_FILES.items()}
        options["tls_client_auth"] = client_auth
        fields = server_fields(tls_mode="enforcing", tls_client_auth=client_auth, tls_trust=options["tls_trust"])
        links = {
            "tls_client_trust": options["tls_trust"],
            "tls_client_cert": options["tls_cert"],
            "tls_client_key": options["tls_key"],
        }
    config = ApplianceConfig(**options)
    broker = fields | (links if client_auth else {})
    if has_accounts:
        ensure_own_account(config.accounts_folder)
        broker |= {"acl_enable": True, "rocketmq_home": config.accounts_folder}
    async with serving(tmp_path / "served", broker=broker, namesrv=fields) as cluster:
        config = ApplianceConfig(**options, namesrv_port=cluster.namesrv.port)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            snippet(config),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
    assert out.startswith(b"SEND_OK"), errors.decode()


def test_accounts_and_tls_are_told(tmp_path: Path) -> None:
    files = {name: str(authority() / file) for name, file in TLS_FILES.items()}
    config = ApplianceConfig(data=tmp_path, accounts=True, **files)
    text = banner(config, version="0", token=None, reports="ready", started_s=1.0)
    assert "plain_acl.yml" in text
    assert f"TLS          permissive   (clients trust {files['tls_trust']})" in text


@pytest.mark.parametrize("state", ["absent", "failed"])
def test_without_reports_it_says_how_to_install_them_also_without_a_network(state: str, tmp_path: Path) -> None:
    text = banner(ApplianceConfig(data=tmp_path), version="0", token=None, reports=state, started_s=1.0)
    assert "`gantry install-reports` " in text and "--from FILE" in text
    page = re.search(r"docs/operations/\w+\.md", text)
    assert page and "gantry install-reports --from" in (ROOT / page[0]).read_text()
