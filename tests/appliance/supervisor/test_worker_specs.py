"""Which processes there are, and the properties files they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.process.local_etcd import LocalEtcd
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import load_broker_config, load_namesrv_config
from appliance.settings.properties_file import PropertiesFile
from appliance.supervisor.worker_specs import FOOTER, HEADER, worker_stages, write_managed_properties


def test_the_name_server_comes_before_the_brokers(tmp_path: Path) -> None:
    stages = worker_stages(ApplianceConfig(data=tmp_path, brokers=2))
    assert [[spec.name for spec in stage] for stage in stages] == [["namesrv"], ["broker-a", "broker-b"], ["proxy"]]
    assert [spec.name for stage in stages for spec in stage if spec.speaks_http] == ["proxy"]


def test_workers_understand_the_files_they_are_given(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path, namesrv_port=1234, broker_port=2345, brokers=2, cluster="Mine")
    worker_stages(config)
    namesrv, _ = load_namesrv_config(tmp_path / "namesrv" / "namesrv.properties")
    broker, store, _ = load_broker_config(tmp_path / "brokers" / "broker-b" / "broker.properties")
    assert (namesrv.listen_port, namesrv.bind_address) == (1234, "127.0.0.1")
    assert (broker.broker_name, broker.listen_port, broker.cluster_name) == ("broker-b", 2445, "Mine")
    assert broker.namesrv_addresses == "127.0.0.1:1234"
    assert store.root == tmp_path / "brokers" / "broker-b" / "store"


def test_brokers_know_the_stores_that_share_their_disk(tmp_path: Path) -> None:
    worker_stages(ApplianceConfig(data=tmp_path, brokers=3))
    for name, others in (("broker-b", ("broker-a", "broker-c")), ("broker-c", ("broker-a", "broker-b"))):
        _, store, _ = load_broker_config(tmp_path / "brokers" / name / "broker.properties")
        assert store.stores_beside_paths == [tmp_path / "brokers" / other / "store" for other in others]


def test_a_slave_has_its_masters_name_and_file_size_and_only_this_machine_may_copy(tmp_path: Path) -> None:
    files = {name: tmp_path / "brokers" / name / "broker.properties" for name in ("broker-a", "broker-a-2")}
    files["broker-a"].parent.mkdir(parents=True)
    files["broker-a"].write_text("mappedFileSizeCommitLog=16777216\n")
    stages = worker_stages(ApplianceConfig(data=tmp_path, bind="0.0.0.0", broker_port=20000, slaves=1))
    assert [spec.name for spec in stages[1]] == ["broker-a", "broker-a-2"]
    master, slave = (load_broker_config(path) for path in files.values())
    assert (master[0].broker_role, slave[0].broker_role, slave[0].broker_id) == ("ASYNC_MASTER", "SLAVE", 1)
    assert (slave[0].broker_name, slave[0].listen_port) == ("broker-a", 20010)
    assert slave[1].commit_log_file_bytes == master[1].commit_log_file_bytes == 16777216
    assert master[0].slaves_enable and master[0].ha_listen_port == 20001
    assert not master[0].why_no_slave("127.0.0.1", "") and master[0].why_no_slave("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize("has_etcd", [True, False])
def test_replicas_confirm_alike_and_elect_their_master_where_etcd_is(tmp_path: Path, has_etcd: bool) -> None:
    if has_etcd:
        (tmp_path / "etcd").mkdir()
        (tmp_path / "etcd" / "node.json").write_text(LocalEtcd("/usr/bin/etcd", 1, 2).to_json())
    stages = worker_stages(ApplianceConfig(data=tmp_path, replicas=3, proxies=0))
    names = [[spec.name for spec in stage] for stage in stages]
    assert names == [["etcd"]] * has_etcd + [["namesrv"], ["broker-a", "broker-a-2", "broker-a-3"]]
    files = [tmp_path / "brokers" / name / "broker.properties" for name in names[-1]]
    members = [load_broker_config(path)[0] for path in files]
    assert [(each.broker_role, each.broker_id) for each in members] == [("SYNC_MASTER", 0), ("SLAVE", 1), ("SLAVE", 2)]
    for each in members:
        assert each.all_ack_in_sync and each.read_confirmed_only and each.min_in_sync_replicas == 2
        assert each.automatic_failover == has_etcd and each.etcd_endpoints == ("http://127.0.0.1:1" if has_etcd else "")


def test_a_role_that_a_promotion_has_changed_stays(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path, slaves=1)
    worker_stages(config)
    path = tmp_path / "brokers" / "broker-a-2" / "broker.properties"
    PropertiesFile(path).change({"brokerRole": "ASYNC_MASTER", "brokerId": "0"})
    worker_stages(config)
    assert (load_broker_config(path)[0].broker_role, load_broker_config(path)[0].broker_id) == ("ASYNC_MASTER", 0)


def test_lines_of_the_operator_stay_and_managed_lines_are_renewed(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    write_managed_properties(path, {"listenPort": "1"})
    path.write_text(path.read_text() + "# ours\nflushDiskType=SYNC_FLUSH\n")
    write_managed_properties(path, {"listenPort": "2"})
    assert path.read_text().splitlines() == [HEADER, "listenPort=2", FOOTER, "# ours", "flushDiskType=SYNC_FLUSH"]


def test_a_line_that_is_no_longer_managed_goes(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    write_managed_properties(path, {"listenPort": "1", "tls.server.mode": "enforcing"})
    write_managed_properties(path, {"listenPort": "1"})
    assert path.read_text().splitlines() == [HEADER, "listenPort=1", FOOTER]


def test_a_setting_that_a_request_changed_stays(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path, bind="127.0.0.1", brokers=1)
    worker_stages(config)
    path = tmp_path / "brokers" / "broker-a" / "broker.properties"
    PropertiesFile(path).change({"traceOn": "false"})
    worker_stages(config)
    assert not load_broker_config(path)[0].trace_on


def test_a_certificate_switches_tls_on_everywhere_and_off_again(tmp_path: Path) -> None:
    plain = ApplianceConfig(data=tmp_path, bind="127.0.0.1", brokers=1)
    tls = ApplianceConfig(data=tmp_path, bind="127.0.0.1", brokers=1, tls_cert="/c.pem", tls_mode="enforcing")
    files = (tmp_path / "brokers" / "broker-a" / "broker.properties", tmp_path / "namesrv" / "namesrv.properties")
    worker_stages(tls)
    broker, namesrv = load_broker_config(files[0])[0], load_namesrv_config(files[1])[0]
    assert (broker.effective_tls_mode, namesrv.effective_tls_mode) == ("enforcing", "enforcing")
    assert broker.outgoing_tls is not None
    assert tls.client_tls is not None
    worker_stages(plain)
    broker, namesrv = load_broker_config(files[0])[0], load_namesrv_config(files[1])[0]
    assert (broker.effective_tls_mode, namesrv.effective_tls_mode) == ("disabled", "disabled")
    assert broker.outgoing_tls is plain.client_tls is None


def test_lines_written_before_there_was_an_end_mark_are_managed_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    path.write_text(f"{HEADER}\nlistenPort=1\ntraceOn=false\n")
    write_managed_properties(path, {"listenPort": "2"})
    assert path.read_text().splitlines() == [HEADER, "listenPort=2", FOOTER, "traceOn=false"]


def test_accounts_are_shared_by_all_workers_and_go_with_the_switch(tmp_path: Path) -> None:
    worker_stages(ApplianceConfig(data=tmp_path, accounts=True))
    files = (tmp_path / "brokers" / "broker-a" / "broker.properties", tmp_path / "namesrv" / "namesrv.properties")
    broker, namesrv = load_broker_config(files[0])[0], load_namesrv_config(files[1])[0]
    assert broker.acl_enable and broker.credentials_file == tmp_path / "accounts" / "appliance.yml"
    assert broker.rocketmq_home == namesrv.rocketmq_home == tmp_path / "accounts"
    worker_stages(ApplianceConfig(data=tmp_path))
    broker, namesrv = load_broker_config(files[0])[0], load_namesrv_config(files[1])[0]
    assert not broker.acl_enable and broker.rocketmq_home is None and namesrv.rocketmq_home is None


def test_with_accounts_this_machine_signs_what_it_tells_the_name_server_also_in_a_folder_that_said_otherwise(
    tmp_path: Path,
) -> None:
    path = tmp_path / "namesrv" / "namesrv.properties"
    worker_stages(ApplianceConfig(data=tmp_path))
    assert load_namesrv_config(path)[0].write_access == "loopback"
    path.write_text(path.read_text() + "writeAccess=any\n")
    worker_stages(ApplianceConfig(data=tmp_path, accounts=True))
    assert load_namesrv_config(path)[0].write_access == "signed"
    worker_stages(ApplianceConfig(data=tmp_path))
    assert load_namesrv_config(path)[0].write_access == "loopback"
