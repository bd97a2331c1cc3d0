"""Acts that wait for name servers: each once, when all have answered or the time is up."""

from __future__ import annotations

import asyncio

from appliance.broker.topics.topic_announcements import TopicAnnouncements


async def test_an_act_waits_for_all_and_happens_once() -> None:
    acts: list[str] = []
    announcements = TopicAnnouncements(wait_s=600)
    announcements.wait("T", [], lambda: acts.append("nobody to wait for"))
    for name in ("one", "two"):
        announcements.wait("T", ["a", "b"], lambda name=name: acts.append(name))  # type: ignore[misc]
    announcements.settle("a", ["T", "other"])
    announcements.settle("b", ["other"])
    assert (acts, bool(announcements)) == (["nobody to wait for"], True)
    announcements.settle("b", ["T"])
    announcements.settle("b", ["T"])
    assert (acts, bool(announcements)) == (["nobody to wait for", "one", "two"], False)


async def test_an_act_happens_when_the_time_is_up_whoever_is_silent() -> None:
    done = asyncio.Event()
    announcements = TopicAnnouncements(wait_s=0.01)
    announcements.wait("T", ["a", "b"], done.set)
    announcements.settle("a", ["T"])
    async with asyncio.timeout(30):
        await done.wait()
    assert not announcements
    acts: list[str] = []
    announcements.wait("T", ["b"], lambda: acts.append("b took too long already"))
    assert (acts, announcements.awaited("T", ["a", "b"])) == (["b took too long already"], {"a"})
    announcements.settle("b", ["T"])
    assert announcements.awaited("T", ["b"]) == {"b"}, "the next change is waited for"


async def test_who_comes_later_waits_no_longer_than_the_first() -> None:
    ended, times = asyncio.Event(), []
    announcements, loop = TopicAnnouncements(wait_s=0.3), asyncio.get_running_loop()
    announcements.wait("T", ["a"], lambda: times.append(loop.time()))
    await asyncio.sleep(0.1)  # the second one comes later
    announcements.wait("T", ["a"], lambda: times.append(loop.time()))
    announcements.wait("T", ["a"], ended.set)
    async with asyncio.timeout(30):
        await ended.wait()
    assert times[1] - times[0] < 0.1
