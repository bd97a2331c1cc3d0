"""What goes over the socket: frames as plain dictionaries, and the names of the groups they are sent to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.cluster import units
from dashboard.language.sentences import again
from dashboard.status.board import Board, Point, Snapshot
from dashboard.status.metrics import Metrics, overview_metrics
from dashboard.status.verdict import judge

OVERVIEW = "overview"
WAITING = "waiting"  # the counts of the menu, on each page
TOPIC = "topic:"
ROWS_MAX = 25  # message rows in one frame; what is more is only counted

Frame = dict[str, Any]


_listeners: Counter[tuple[str, str]] = Counter()  # sockets of a channel, by language


def listen(channel: str, language: str) -> None:
    """Count a socket: a frame is made once for each language in which its channel is watched, not for each socket."""
    _listeners[channel, language] += 1


def leave(channel: str, language: str) -> None:
    _listeners[channel, language] -= 1
    if _listeners[channel, language] <= 0:
        del _listeners[channel, language]


def languages_of(channel: str) -> list[str]:
    """The languages in which sockets watch the channel."""
    return sorted(language for watched, language in _listeners if watched == channel)


def group_of(channel: str, language: str) -> str:
    """The Channels group of a channel in a language; names hold characters that group names may not."""
    return f"live.{language}." + hashlib.sha256(channel.encode()).hexdigest()[:40]


def overview_frame(snapshot: Snapshot, point: Point) -> Frame:
    """One second of the Overview, in the language that is active."""
    verdict = judge(snapshot)
    frame = _metrics_frame(OVERVIEW, overview_metrics(snapshot, verdict))
    frame |= {
        "level": int(verdict.level),
        "word": verdict.level.word,
        "sentence": verdict.sentence,
        "link": verdict.link,
    }
    frame["points"] = [_point(point)]
    return frame


def overview_start(board: Board) -> Frame | None:
    """The first frame of a socket: everything, with the whole chart. None before the first sample."""
    if board.snapshot is None or not board.points:
        return None
    return overview_frame(board.snapshot, board.points[-1]) | {"points": points(board), "all": True}


def points(board: Board) -> list[list[float | None]]:
    return [_point(point) for point in board.points]


def topic_frame(topic: str, metrics: Metrics, rows: Sequence[str], more: int = 0) -> Frame:
    """New message rows (HTML made by the page's own template, newest first) and the topic's metrics."""
    frame = _metrics_frame(TOPIC + topic, metrics)
    if rows:
        frame["rows"] = list(rows)[:ROWS_MAX]
    if more:
        frame["more"] = more
    return frame


def waiting_frame(counts: Mapping[str, int], now: float) -> Frame:
    """The counts of the menu as it shows them, by page."""
    return {
        "channel": WAITING,
        "now": round(now, 3),
        "counts": {page: units.count(count) if count else "" for page, count in counts.items()},
    }


def merge(older: Frame, newer: Frame) -> Frame:
    """Two frames of one channel as one, for a socket that is slower than the news."""
    merged = older | newer
    if "points" in older and not newer.get("all"):
        merged["points"] = older["points"] + newer["points"]
    rows = newer.get("rows", []) + older.get("rows", [])
    more = newer.get("more", 0) + older.get("more", 0) + max(0, len(rows) - ROWS_MAX)
    if rows:
        merged["rows"] = rows[:ROWS_MAX]
    if more:
        merged["more"] = more
    return merged


def _metrics_frame(channel: str, metrics: Metrics) -> Frame:
    return {
        "channel": channel,
        "now": round(metrics.now, 3),
        "shape": metrics.shape,
        "figures": {
            key: [again(metric.text), None if metric.at is None else round(metric.at, 1), again(metric.why)]
            for key, metric in metrics.values.items()
        },
        "bars": {key: None if ratio is None else round(ratio, 4) for key, ratio in metrics.bars.items()},
    }


def _point(point: Point) -> list[float | None]:
    return [round(point.at, 1), *(None if rate is None else round(rate, 1) for rate in point[1:])]
