"""All consume queues by topic and queue id: loading, finding, making, flushing and removing them."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import MessageStoreConfig
from store.queues.consume_queue import FILLER_SIZE, ConsumeQueue
from store.queues.consume_queue_ext import ConsumeQueueExt
from store.queues.descriptors import DescriptorCache
from store.queues.topic_slot import TopicSlot, is_storable

logger = logging.getLogger(__name__)

KEEP_UNITS = 2048  # recent units of a busy queue stay in memory: consumers near its end need no file
KEEP_QUEUES = 512  # for so many queues
QUEUE_ID_MAX = 0x7FFFFFFF
FILE_SYSTEMS_OWN = "lost+found"  # where the folder is a disk's root; only the administrator may look into it


class WriteJob:
    """What a queue's files lack, see ConsumeQueue.pending. A thread writes it, unless the queue is cut before."""

    __slots__ = ("_fillers", "_lock", "_units", "index", "is_settled", "is_written", "queue")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.index = queue.written_index
        self._fillers, self._units = queue.pending()
        self.is_written = False
        self.is_settled = False  # the queue was cut meanwhile, and knows what became of this
        self._lock = threading.Lock()

    @property
    def end(self) -> int:
        return self.index + self._fillers + len(self._units) // UNIT_BYTES

    def write(self) -> list[Path]:
        """Write the units to their files; return the files. Runs on a thread."""
        queue = self.queue
        with self._lock:
            if self.is_settled:
                return []
            paths = queue.ext.write_out() if queue.ext is not None else []  # first: a unit must not refer to nothing
            paths += queue.write_out(self.index, self._fillers, self._units)
            self.is_written = True
        return paths

    def settle(self) -> bool:
        """Write no more; return whether all was written. Waits for a thread that is about it."""
        with self._lock:
            self.is_settled = True
        return self.is_written


class ConsumeQueueTable:
    """One TopicSlot per known topic. Loop thread only, but for `write_jobs` and `sync_paths`."""

    def __init__(self, folder: Path, config: MessageStoreConfig) -> None:
        self.slots: dict[str, TopicSlot] = {}
        self.dirty: list[ConsumeQueue] = []
        self._folder = folder
        self._file_bytes = -(-config.consume_queue_file_bytes // UNIT_BYTES) * UNIT_BYTES
        self._descriptors = DescriptorCache()
        self._ext_folder = folder.with_name("consumequeue_ext")
        self._ext_bytes = config.consume_queue_ext_file_bytes
        self._ext_enable = config.consume_queue_ext_enable
        self._has_ext = self._ext_enable or self._ext_folder.is_dir()  # what is there is read, enabled or not
        self.has_lost_queues = False  # some were removed since files_below was last asked
        self._files_made = 0  # by all queues, those included that have expired: retention does not change it
        self._new_files: list[tuple[int, ConsumeQueue]] = []  # with the first message's physical offset
        self._warm: dict[ConsumeQueue, None] = {}  # those with written units in memory, oldest first
        self._jobs: dict[ConsumeQueue, WriteJob] = {}  # taken, and neither done nor failed

    @property
    def folder(self) -> Path:
        return self._folder

    def load(self, synced_end: int = 0) -> None:
        """Open every queue of the folder. Other files are logged and left alone.

        Of messages below the physical offset `synced_end` no unit is missing.
        """
        if not self._folder.is_dir():
            return
        for topic_folder in _entries(self._folder):
            is_topic = topic_folder.name != FILE_SYSTEMS_OWN and is_storable(topic_folder.name)
            if not is_topic or not topic_folder.is_dir():
                logger.warning("stray file ignored", extra={"event": "stray_file", "path": topic_folder.path})
                continue
            slot = self.slot(topic_folder.name)
            assert slot is not None
            for queue_folder in _entries(topic_folder):
                if _is_queue_id(queue_folder.name) and queue_folder.is_dir():
                    queue = self.make(slot, int(queue_folder.name))
                    queue.load(synced_end)
                    if queue.ext is not None:
                        queue.load_ext(repair=self._ext_enable)
                else:
                    logger.warning("stray file ignored", extra={"event": "stray_file", "path": queue_folder.path})

    def slot(self, topic: str) -> TopicSlot | None:
        """Return the topic's slot, made at first use; None when no record could carry this name."""
        slot = self.slots.get(topic)
        if slot is None and is_storable(topic):
            slot = TopicSlot(topic)
            self.slots[slot.topic] = slot
        return slot

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return the queue, None when it does not exist: asking makes none."""
        slot = self.slots.get(topic)
        return slot.queues.get(queue_id) if slot is not None else None

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return the queue, made when new. The topic must be storable."""
        slot = self.slot(topic)
        assert slot is not None
        return self.of(slot, queue_id)

    def of(self, slot: TopicSlot, queue_id: int) -> ConsumeQueue:
        """Return a queue of the topic's, made when new."""
        return slot.queues.get(queue_id) or self.make(slot, queue_id)

    def make(self, slot: TopicSlot, queue_id: int) -> ConsumeQueue:
        folder = f"{self._folder}/{slot.topic}/{queue_id}"
        queue = ConsumeQueue(folder, slot.topic, queue_id, self._file_bytes, self._descriptors)
        if self._has_ext:
            ext_folder = self._ext_folder / slot.topic / str(queue_id)
            queue.ext = ConsumeQueueExt(ext_folder, self._ext_bytes, self._descriptors)
        slot.add(queue)
        return queue

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for slot in list(self.slots.values()):
            yield from list(slot.queues.values())

    def remove_topic(self, topic: str) -> list[Path]:
        """Forget a topic's queues; return their folders for the caller to delete."""
        slot = self.slots.pop(topic, None)
        if slot is None:
            return []
        slot.is_gone = True
        for queue in slot.queues.values():
            self._forget(queue)
        return [self._folder / topic, *([self._ext_folder / topic] if self._has_ext else [])]

    def remove_queue(self, queue: ConsumeQueue) -> list[Path]:
        """Forget one queue; return its folders for the caller to delete."""
        slot = self.slots[queue.topic]
        slot.drop(queue)
        if not slot.queues:
            del self.slots[queue.topic]
            slot.is_gone = True
        self._forget(queue)
        return [queue.folder, *([queue.ext.folder] if queue.ext is not None else [])]

    # -- counting files -------------------------------------------------------------------------------------------

    def count_files(self) -> None:
        """Count again, after the files were looked at or changed by a start."""
        self._files_made = sum(queue.files_made(queue.written_index) for queue in self if queue.bases)
        self._new_files = []

    def files_below(self, physical_end: int) -> int:
        """Return how many files all queues have made for their messages below this offset, which only grows.

        A start that finds fewer has lost some. Counted as files are made: there may be too many queues to ask each.
        """
        self.has_lost_queues = False
        self._new_files = [each for each in self._new_files if each[0] >= physical_end and self._is_live(each[1])]
        return self._files_made - len(self._new_files)

    def _count_new_files(self, queue: ConsumeQueue, index: int, end: int) -> None:
        """Count the files made for the units from `index` to `end`, before the queue notes them as written."""
        made = queue.files_made(index) if queue.bases else 0
        for number in range(made, queue.files_made(end) if end > index else 0):
            unit = queue.unit_at(max(number * queue.file_units, index))
            self._files_made += 1
            first = unit.physical_offset if unit is not None and unit.size_bytes != FILLER_SIZE else 0
            self._new_files.append((first, queue))

    # -- flushing ------------------------------------------------------------------------------------------------

    def take_jobs(self, count_max: int | None = None) -> list[WriteJob]:
        """Return what the files of up to `count_max` queues lack, those first that wait longest."""
        dirty, self.dirty = self.dirty[:count_max], self.dirty[len(self.dirty) if count_max is None else count_max :]
        jobs: list[WriteJob] = []
        for queue in dirty:
            queue.dirty = False
            if self._is_live(queue):
                job = self._jobs[queue] = WriteJob(queue)
                jobs.append(job)
        return jobs

    def jobs_done(self, jobs: list[WriteJob]) -> None:
        """Note that the files have these units; free the memory of all but the busiest queues."""
        keep = KEEP_UNITS if len(jobs) <= KEEP_QUEUES else 0
        for job in jobs:
            if self._is_over(job):
                continue
            self._note_written(job, keep)
            if keep:
                self._warm.pop(job.queue, None)
                self._warm[job.queue] = None
        while len(self._warm) > KEEP_QUEUES:
            oldest = next(iter(self._warm))
            del self._warm[oldest]
            oldest.trim(0)

    def jobs_failed(self, jobs: list[WriteJob]) -> None:
        """Mark the queues dirty again: their units are still in memory and go with the next round."""
        for job in jobs:
            if not self._is_over(job):
                job.queue.failed_end = job.end  # until it is written: a cut comes first, maybe
                self._mark_dirty(job.queue)

    def cut(self, queue: ConsumeQueue, index: int) -> None:
        """Drop a queue's units from `index` on while the store runs, with those that a thread is writing."""
        job = self._jobs.pop(queue, None)
        if job is not None and job.settle():
            self._note_written(job, KEEP_UNITS)  # so that the cut erases them
        elif job is not None:
            queue.failed_end = job.end  # the thread may have failed half way
        if queue.tail:
            self._mark_dirty(queue)  # the job is over, even if the cut fails
        files = queue.files_made(queue.written_index) if queue.bases else 0
        queue.cut(index)
        if gone := files - (queue.files_made(queue.written_index) if queue.bases else 0):
            end = queue.max_physical_offset
            self._new_files = [each for each in self._new_files if each[1] is not queue or each[0] < end]
            self._files_made -= gone
            self.has_lost_queues = True

    def _is_over(self, job: WriteJob) -> bool:
        """Take a job off the list; return whether its queue was deleted or cut while it was written."""
        if not job.is_settled:
            self._jobs.pop(job.queue, None)
        if not self._is_live(job.queue):
            _remove_again(job.queue)
            return True
        return job.is_settled

    def _note_written(self, job: WriteJob, keep: int) -> None:
        queue = job.queue
        if queue.ext is not None:
            queue.ext.written()
        self._count_new_files(queue, job.index, job.end)
        queue.written(job.end, keep)

    def _mark_dirty(self, queue: ConsumeQueue) -> None:
        if not queue.dirty:
            queue.dirty = True
            self.dirty.append(queue)

    def close(self) -> None:
        self._descriptors.close()

    def _is_live(self, queue: ConsumeQueue) -> bool:
        return self.find(queue.topic, queue.queue_id) is queue

    def _forget(self, queue: ConsumeQueue) -> None:
        if queue.bases:
            self._files_made -= queue.files_made(queue.written_index)
            self.has_lost_queues = True
        queue.forget_files(list(queue.bases))
        if queue.ext is not None:
            queue.ext.close()
        self._warm.pop(queue, None)


def _remove_again(queue: ConsumeQueue) -> None:
    """A queue was deleted while its units were written, and the writer has made its folders again."""
    shutil.rmtree(queue.folder, ignore_errors=True)
    if queue.ext is not None:
        shutil.rmtree(queue.ext.folder, ignore_errors=True)


def _is_queue_id(name: str) -> bool:
    """Return whether a folder of this name is one that a queue is written to: `7`, but not `007`."""
    return name.isascii() and name.isdecimal() and str(int(name)) == name and int(name) <= QUEUE_ID_MAX


def _entries(folder: os.PathLike[str]) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def write_jobs(jobs: list[WriteJob]) -> list[Path]:
    """Write the units to their files; return the files. Blocks: for a thread."""
    return [path for job in jobs for path in job.write()]


def sync_paths(paths: set[Path]) -> None:
    """Sync these files, those that are still there. Blocks: for a thread."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)
