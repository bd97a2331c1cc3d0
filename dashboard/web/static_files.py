"""Static files, served by the process itself: no collect step, no second server, nothing from outside.

The address of a file holds the start of its SHA-256: /static/<hash>/<path>. With the right hash the answer may be
kept for a year; a new version has a new address. An address without the hash works too, but must be asked for again
each time. Text is compressed once and kept; a file of more than KEEP_BYTES_MAX is read each time.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import mimetypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import Http404, HttpRequest, HttpResponse

from dashboard.access.permissions import Permission, requires

HASH_CHARS = 12
YEAR = "public, max-age=31536000, immutable"
ALWAYS_ASK = "no-cache"
KEEP_BYTES_MAX = 2 * 1024 * 1024  # a larger answer is read again rather than kept
TEXT_TYPES = ("text/", "application/javascript", "application/json", "image/svg")
SUFFIXES_SERVED = {".css", ".js", ".svg", ".png", ".ico", ".webmanifest", ".woff2", ".txt"}
Find = Callable[[str], Path | None]  # a name to the file that has it


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file as it is now: where, which version, what kind."""

    path: Path
    modified_ns: int
    digest: str
    content_type: str

    @property
    def is_text(self) -> bool:
        return self.content_type.startswith(TEXT_TYPES)


class Shelf:
    """Files by name, looked up once and again when they changed; finished answers by digest and encoding.

    keep_bytes_max: of a finished answer; 0 keeps none.
    """

    def __init__(self, find: Find, keep_bytes_max: int = KEEP_BYTES_MAX) -> None:
        self._find = find
        self._keep_bytes_max = keep_bytes_max
        self._files: dict[str, StaticFile] = {}
        self._bodies: dict[tuple[str, bool], bytes] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> StaticFile | None:
        """The file of that name, None when there is none."""
        known = self._files.get(name)
        if known is not None and _modified_ns(known.path) == known.modified_ns:
            return known
        path = self._find(name)
        if path is None:
            return None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:HASH_CHARS]
        content_type = mimetypes.guess_type(path.name, strict=False)[0] or "application/octet-stream"
        file = StaticFile(path, _modified_ns(path), digest, content_type)
        with self._lock:
            self._files[name] = file
        return file

    def body(self, file: StaticFile, *, compressed: bool) -> bytes:
        """The file's bytes, gzipped if asked."""
        kept = self._bodies.get((file.digest, compressed))
        if kept is not None:
            return kept
        body = file.path.read_bytes()
        if compressed:
            body = gzip.compress(body, 6, mtime=0)
        if len(body) <= self._keep_bytes_max:
            with self._lock:
                self._bodies[file.digest, compressed] = body
        return body


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


def _in_an_app(name: str) -> Path | None:
    found = finders.find(name)
    return Path(found) if isinstance(found, str) and Path(found).suffix in SUFFIXES_SERVED else None


shelf = Shelf(_in_an_app)


class HashedStaticStorage(StaticFilesStorage):
    """What `{% static %}` asks: the address of a file, with its hash in front."""

    def url(self, name: str | None) -> str:
        file = shelf.find(name or "")
        if file is None:
            raise FileNotFoundError(f"static file {name} does not exist")
        return f"{self.base_url}{file.digest}/{name}"


@requires(Permission.OPEN)
async def serve(request: HttpRequest, path: str) -> HttpResponse:
    """GET /static/<hash>/<path>, or /static/<path>."""
    first, _, rest = path.partition("/")
    has_hash = len(first) == HASH_CHARS and all(char in "0123456789abcdef" for char in first)
    name = rest if has_hash else path
    return await answer(request, shelf, name, first if has_hash else "")


async def answer(request: HttpRequest, shelf: Shelf, name: str, digest: str = "") -> HttpResponse:
    """The file, or 304. digest: of the version that the address names. Raises Http404."""
    file = await asyncio.to_thread(shelf.find, name)
    if file is None:
        raise Http404
    etag = f'"{file.digest}"'
    headers = {
        "ETag": etag,
        "Cache-Control": YEAR if digest == file.digest else ALWAYS_ASK,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers=headers)
    compressed = file.is_text and "gzip" in request.headers.get("Accept-Encoding", "")
    body = await asyncio.to_thread(shelf.body, file, compressed=compressed)
    if compressed:
        headers["Content-Encoding"] = "gzip"
    charset = "; charset=utf-8" if file.is_text else ""
    return HttpResponse(body, content_type=file.content_type + charset, headers=headers)


serve.is_static = True  # type: ignore[attr-defined]  # no session is looked up for a style sheet
