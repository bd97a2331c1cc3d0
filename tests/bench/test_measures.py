"""What is read from the kernel, on texts made by hand."""

from __future__ import annotations

from appliance.bench.processes import PortRange, free_ports, sum_smaps
from appliance.bench.warm_up import free_memory, touch_free_memory

SMAPS = """\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/python3
Size:                328 kB
Rss:                 200 kB
Pss:                 100 kB
7f0000000000-7f0040000000 rw-s 00000000 08:02 42  /tmp/bench/store/commitlog/00000000000000000000
Size:            1048576 kB
Rss:              500000 kB
Pss:              500000 kB
7f1000000000-7f1000001000 rw-p 00000000 00:00 0
Rss:                  30 kB
Pss:                  30 kB
7f2000000000-7f2000001000 rw-p 00000000 00:00 0   [heap]
Rss:                   5 kB
Pss:                   5 kB
"""


def test_memory_leaves_out_the_files_of_the_store() -> None:
    memory = sum_smaps(SMAPS, "/tmp/bench/store")
    assert memory == (235 * 1024, 135 * 1024)


def test_free_ports_finds_neighbours() -> None:
    assert 2 < free_ports(1, -2) < 65_535


def test_no_port_comes_again_before_all_others() -> None:
    ports = PortRange(20_000, 21_000)
    ports.keep_share(7, 5)
    taken = [port + delta for port in (ports.free(1, -2) for _ in range(20)) for delta in (-2, 0, 1)]
    assert len(set(taken)) == len(taken)
    assert {port // 200 for port in taken} == {102}


def test_free_memory_is_what_machine_and_container_have() -> None:
    meminfo = "MemTotal:       24683776 kB\nMemFree:        13664256 kB\nMemAvailable:   18668000 kB\n"
    assert free_memory(meminfo, None) == 13_664_256 << 10
    assert free_memory(meminfo, 1 << 30) == 1 << 30
    assert free_memory("", None) == 0


def test_memory_is_touched_and_given_back() -> None:
    touched = touch_free_memory(70 << 20)
    assert touched.size_bytes in (0, 64 << 20)  # none where less than a GiB is free
    assert (touched.us_a_kb > 0) is (touched.size_bytes > 0)
