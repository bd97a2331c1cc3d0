"""Copying with the compiled twin against the Python path, which is the reference: all that is left behind compared."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.broker.replication.ha_frames import FrameReader
from store.message_store import MessageStore
from tests.appliance.fast_path.copies import cut_at_random, two_copies
from tests.bounded import bounded
from tests.store import golden
from tests.store.conftest import small_config
from tests.store.made_records import PROPERTIES, V6, Making, logs

FILE_BYTES = 65536
CAPTURED = Path(__file__).parents[2] / "golden" / "frames" / "ha_stream.bin"


def plain_log(count: int, *, file_bytes: int = FILE_BYTES) -> bytes:
    """Plain records of some topics and queues, with keys and tags, over several files."""
    making, dice = Making(file_bytes), random.Random(7)
    for number in range(count):
        making.add(
            dice.randbytes(dice.randrange(900)),
            topic=b"T%d" % (number % 3),
            queue_id=number % 5,
            properties=b"UNIQ_KEY\x01AC1100010A0018B4AAC2%04X\x02KEYS\x01k%d both\x02TAGS\x01t%d"
            % (number, number, number % 7),
        )
    return bytes(making.data)


@pytest.mark.parametrize("largest", [90, 3000, 200_000])
def test_pieces_of_any_size(tmp_path: Path, compiled: ModuleType, largest: int) -> None:
    with two_copies(tmp_path, compiled) as copies:
        copies.append_all(list(cut_at_random(plain_log(700), largest)))
        assert copies.fed_fast > 650
        assert len(copies.plain.store.parts.index.files) > 2 and len(copies.plain.store.parts.log.queue.files) > 4
        copies.check()


def test_a_log_cut_at_every_byte(tmp_path: Path, compiled: ModuleType) -> None:
    making = Making(4096)
    for number in range(4):
        making.add(b"b" * number, properties=PROPERTIES[4])
    making.add(b"b" * 3300)
    making.add(properties=PROPERTIES[5])  # behind a blank record, and a file's end
    log = bytes(making.data)
    for piece_bytes in (1, 2):
        with two_copies(tmp_path / str(piece_bytes), compiled, commit_log_file_bytes=4096) as copies:
            copies.append_all([log[at : at + piece_bytes] for at in range(0, len(log), piece_bytes)])
            assert copies.plain.store.max_physical_offset == len(log) > 4096
            copies.check()
    with two_copies(tmp_path / "two", compiled, commit_log_file_bytes=4096) as copies:
        copies.append(log[:700])
        for cut in range(700, len(log), 61):
            copies.append(log[copies.plain.store.copy.end : cut])
        copies.check()


def test_records_for_python_stand_between_plain_ones(tmp_path: Path, compiled: ModuleType) -> None:
    making = Making(FILE_BYTES)
    for number, properties in enumerate(PROPERTIES * 3):
        making.add(queue_id=number % 2, properties=properties)
        making.add(b"six", host=V6)
        making.add(topic=b"SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x012\x02TAGS\x01a")
        making.add(
            topic=b"half%d" % (number % 4), sys_flag=4 * (number % 4), properties=b"TRAN_MSG\x01true\x02TAGS\x01x"
        )
    with two_copies(tmp_path, compiled) as copies:
        copies.append_all(list(cut_at_random(bytes(making.data), 4000)))
        assert copies.plain.store.stats.put_times == 12 * len(PROPERTIES)
        assert 2 * len(PROPERTIES) < copies.fed_fast < 9 * len(PROPERTIES)
        copies.check()


def test_a_queue_that_begins_anew_or_has_gaps(tmp_path: Path, compiled: ModuleType) -> None:
    making = Making(FILE_BYTES)
    for step in (5, 1, 1, 40, 1, -20, 1, 1, 0, 1, -100, 1):
        making.add(step=step)
    with two_copies(tmp_path, compiled) as copies:
        copies.append(bytes(making.data))
        assert 0 < copies.fed_fast < 12
        copies.check()


def test_the_frames_that_a_master_of_rocketmq_sent(tmp_path: Path, compiled: ModuleType) -> None:
    stream = CAPTURED.read_bytes()
    for largest in (50, 5000):
        with two_copies(tmp_path / str(largest), compiled) as copies:
            reader = FrameReader()
            for part in cut_at_random(stream, largest):
                for position, piece in reader.feed(part):
                    assert position == copies.plain.store.copy.end
                    copies.append(bytes(piece))
            assert copies.plain.store.max_physical_offset == 3097 and copies.fed_fast
            copies.check()


@pytest.mark.parametrize("name", [name for name in golden.GOLDEN_STORES if name != "cq_ext"])
def test_logs_that_rocketmq_wrote(tmp_path: Path, compiled: ModuleType, name: str) -> None:
    config = golden.unpack(name, tmp_path / "apache")
    files = sorted((config.root / "commitlog").iterdir())
    start, data = int(files[0].name), b"".join(path.read_bytes() for path in files)
    end = max(at + len(each) for at, each in golden.commit_log_records(config.root))
    with two_copies(tmp_path, compiled, commit_log_file_bytes=config.commit_log_file_bytes) as copies:
        for each in (copies.fast, copies.plain):
            each.append(start, data[: end - start])
        assert copies.plain.store.max_physical_offset == end
        assert copies.fed_fast or name == "ipv6_delay"  # of its four records none is plain
        copies.check()


@bounded(100)
@given(log=logs(4096), largest=st.sampled_from((60, 700, 20_000)), crashes=st.booleans())
def test_made_up_records(compiled: ModuleType, log: bytes, largest: int, crashes: bool) -> None:
    pieces = list(cut_at_random(log, largest))
    with (
        tempfile.TemporaryDirectory() as folder,
        two_copies(Path(folder), compiled, commit_log_file_bytes=4096) as both,
    ):
        both.append_all(pieces[: len(pieces) // 2])
        if crashes:
            both.check()
            both.crash()
            both.check()
            return
        both.append_all(pieces[len(pieces) // 2 :])
        both.check()


@pytest.mark.parametrize("check_crc", [True, False])
def test_a_start_after_a_crash_reads_the_same(tmp_path: Path, compiled: ModuleType, check_crc: bool) -> None:
    log = plain_log(400)
    with two_copies(tmp_path, compiled, check_crc_on_recover=check_crc) as copies:
        copies.append(log)
        copies.crash()
        assert copies.fed_fast == 400 - 15  # the first of each queue are Python's: it makes them
        copies.check()


def test_a_start_ends_the_log_where_a_body_is_damaged(tmp_path: Path, compiled: ModuleType) -> None:
    log = plain_log(60)
    with two_copies(tmp_path, compiled) as copies:
        copies.append(log)
        for each in (copies.fast, copies.plain):
            each.store.abandon()
            path = min((each.store.config.root / "commitlog").iterdir())
            with path.open("r+b") as file:
                file.seek(len(log) // 2)
                file.write(b"\xa5\x5a\xa5\x5a")
            each.open()
        assert 0 < copies.fed_fast < 60
        assert 0 < copies.plain.store.max_physical_offset < len(log)
        copies.check()


def test_a_store_has_no_twin_by_itself(tmp_path: Path) -> None:
    """The Python path is whole: what compiles is a broker's affair."""
    assert MessageStore(small_config(tmp_path)).parts.dispatcher.plain_feed is None
