"""Image, compose file and manifests: read by the tools that know their forms, and by our own parsers.

The image is built and run by tests/interop/test_single_file.py; no test runs it in a cluster.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from appliance.cli.commands import parser_of
from appliance.cli.doctor.ready import TIMEOUT_S
from appliance.settings.acl import AclSettings
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import load_broker_config, load_namesrv_config
from tests.conftest import missing, require_tool
from tests.docs.shell_lines import LINES

ROOT = Path(__file__).resolve().parents[2]
CONTAINER, KUBERNETES = ROOT / "deploy" / "container", ROOT / "deploy" / "kubernetes"
MANIFESTS = sorted(path for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
VERSIONS = ("1.30", "1.34")
ONE_OF_TWO = "maxUnavailable"


def documents() -> list[dict[str, Any]]:
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text()) if each]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in documents() if each["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    return {name: each["spec"]["template"]["spec"] for name, each in of_kind("StatefulSet").items()}


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods().items():
        for each in [*pod.get("initContainers", ()), *pod["containers"]]:
            yield f"{name}/{each['name']}", each


def command_lines() -> Iterator[list[str]]:
    """Of `gantry`, without that word."""
    for line in LINES:
        if line.command.startswith("kubectl exec "):
            yield shlex.split(line.command.partition(" -- gantry ")[2])
    for _, each in containers():
        if "command" not in each:
            yield each["args"]
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if "exec" in each.get(probe, {}):
                assert each[probe]["exec"]["command"][0] == "gantry"
                yield each[probe]["exec"]["command"][1:]
    dockerfile = (CONTAINER / "Dockerfile").read_text()
    for words in re.findall(r"^\s*CMD (\[.*\])$", dockerfile, re.MULTILINE):
        yield [word for word in yaml.safe_load(words) if word != "gantry"]
    yield yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["gantrymq"]["command"]


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))  # of the lock, where there is one
    if hadolint is None:
        missing("hadolint", "it is in the lock for Linux on x86-64 alone")
    done = subprocess.run([hadolint, CONTAINER / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_are_what_kubernetes_knows(version: str) -> None:
    import kubernetes_validate  # here: it makes grammars for more than a second, and every worker collects this module

    for each in documents():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_pages_command_applies_every_manifest() -> None:
    """As far as kubectl goes without a cluster: it puts together what it would send."""
    require_tool("kubectl", "it puts the manifests together")
    (line,) = (line.command for line in LINES if line.command.startswith("kubectl apply "))
    command = ["bash", "-c", line.replace("apply --kustomize", "kustomize")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    sent = [(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(done.stdout)]
    assert sorted(sent) == sorted((each["kind"], each["metadata"]["name"]) for each in documents())


def test_the_page_asks_a_pod_and_a_name_server_that_are_there() -> None:
    (line,) = (line.command for line in LINES if line.command.startswith("kubectl exec "))
    words = shlex.split(line)
    assert words[2] in {f"broker-{number}" for number in range(of_kind("StatefulSet")["broker"]["spec"]["replicas"])}
    assert words[-1] in broker_settings()["namesrvAddr"].split(";")


def test_the_pages_commands_make_the_secrets_that_pods_read(tmp_path: Path) -> None:
    """As far as kubectl goes without a cluster: it prints what it would send."""
    require_tool("kubectl", "it makes the secrets")
    made: dict[str, set[str]] = {}
    for line in (line.command for line in LINES if line.command.startswith("kubectl create secret ")):
        (tmp_path / line.rpartition("=")[2]).write_text("a secret\n")
        command = ["bash", "-c", f"{line} --dry-run=client --output yaml"]
        nowhere = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(command, cwd=tmp_path, env=nowhere, capture_output=True, text=True, check=True)
        secret = yaml.safe_load(done.stdout)
        made[secret["metadata"]["name"]] = set(secret["data"])
    mounted = {each["secret"]["secretName"] for pod in pods().values() for each in pod["volumes"] if "secret" in each}
    text = "".join(path.read_text() for path in MANIFESTS) + str(AclSettings().acl_file)  # in the home that they name
    assert made.keys() == mounted
    assert [key for keys in made.values() for key in keys if not re.search(rf"/{re.escape(key)}\b", text)] == []


def test_every_command_line_is_one_that_gantry_understands() -> None:
    for words in command_lines():
        parser_of(words[0]).parse_args(words[1:])


def test_s06_every_container_is_confined() -> None:
    for name, pod in pods().items():
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"], name
    for name, each in containers():
        confined = each["securityContext"]
        assert confined["readOnlyRootFilesystem"] and not confined["allowPrivilegeEscalation"], name
        assert confined["capabilities"] == {"drop": ["ALL"]}, name
    compose = yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["gantrymq"]
    assert compose["read_only"] and compose["cap_drop"] == ["ALL"]
    assert re.search(r"^USER 10001:10001$", (CONTAINER / "Dockerfile").read_text(), re.MULTILINE)


def test_each_serving_container_has_probes_and_each_volume_is_there() -> None:
    for name, pod in pods().items():
        claims = {each["metadata"]["name"] for each in of_kind("StatefulSet")[name]["spec"]["volumeClaimTemplates"]}
        there = claims | {each["name"] for each in pod["volumes"]}
        for each in pod["containers"]:
            assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= set(each), name
            assert {mount["name"] for mount in each["volumeMounts"]} <= there, name


def test_a_check_ends_by_itself_before_it_is_ended() -> None:
    """Then it says why; an interpreter has to start, too."""
    limits = [
        each[probe].get("timeoutSeconds", 1)
        for _, each in containers()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        if "exec" in each.get(probe, {})
    ]
    (image,) = re.findall(r"^HEALTHCHECK .*--timeout=(\d+)s", (CONTAINER / "Dockerfile").read_text(), re.MULTILINE)
    assert min(*limits, int(image)) >= 2 * TIMEOUT_S


def test_members_are_spread_and_a_drain_of_nodes_leaves_enough() -> None:
    sets, budgets = of_kind("StatefulSet"), of_kind("PodDisruptionBudget")
    for name in ("broker", "name-server"):
        labels = sets[name]["spec"]["template"]["metadata"]["labels"]
        (term,) = pods()[name]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"] == labels == sets[name]["spec"]["selector"]["matchLabels"]
        assert budgets[name]["spec"]["selector"]["matchLabels"] == labels
        assert of_kind("Service")[name]["spec"]["selector"] == labels
        assert sets[name]["spec"]["serviceName"] == name
    members, least = sets["broker"]["spec"]["replicas"], broker_settings()["minInSyncReplicas"]
    assert members - budgets["broker"]["spec"][ONE_OF_TWO] >= int(least)


def broker_settings() -> dict[str, str]:
    lines = of_kind("ConfigMap")["gantrymq"]["data"]["broker.properties"].splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_pod_lays_out_settings_that_a_broker_starts_with_and_does_so_once(tmp_path: Path, number: int) -> None:
    data = of_kind("ConfigMap")["gantrymq"]["data"]
    (tmp_path / "broker.properties.of-all").write_text(data["broker.properties"])
    script = data["lay-out.sh"].replace("/data/", f"{tmp_path}/")
    script = script.replace("/etc/gantrymq/settings/broker.properties", str(tmp_path / "broker.properties.of-all"))
    for _ in range(2):
        subprocess.run(["sh", "-c", script], env={"POD_NAME": f"broker-{number}", "PATH": "/bin:/usr/bin"}, check=True)
    config, store, ignored = load_broker_config(tmp_path / "broker.properties")
    assert ignored == [] and str(store.root) == "/data/store"
    assert (config.broker_id, config.is_slave, config.automatic_failover) == (number, number > 0, True)
    assert config.advertised_host == f"broker-{number}.broker"
    (tmp_path / "broker.properties").write_text("brokerRole=SLAVE\n")  # a promotion writes into it
    subprocess.run(["sh", "-c", script], env={"POD_NAME": f"broker-{number}", "PATH": "/bin:/usr/bin"}, check=True)
    assert (tmp_path / "broker.properties").read_text() == "brokerRole=SLAVE\n"


def test_all_name_the_name_servers_that_run(tmp_path: Path) -> None:
    replicas = of_kind("StatefulSet")["name-server"]["spec"]["replicas"]
    wanted = ";".join(f"name-server-{number}.name-server:9876" for number in range(replicas))
    assert broker_settings()["namesrvAddr"] == wanted
    assert f"--attach={wanted}" in pods()["dashboard"]["containers"][0]["args"]
    path = tmp_path / "namesrv.properties"
    path.write_text(of_kind("ConfigMap")["gantrymq"]["data"]["namesrv.properties"])
    load_namesrv_config(path)


def test_the_compose_file_asks_for_an_address_and_keeps_its_data(tmp_path: Path) -> None:
    service = yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["gantrymq"]
    names = {name.removeprefix("GANTRY_").lower() for name in service["environment"]}
    assert names <= set(ApplianceConfig.__dataclass_fields__)
    assert service["environment"]["GANTRY_ADVERTISE"].startswith("${ADVERTISE:?")
    assert service["volumes"] == ["data:/data"]
