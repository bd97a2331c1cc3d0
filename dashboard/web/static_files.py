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
from dataclasses import dataclass
from pathlib import Path

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires

HASH_CHARS = 12
YEAR = "public, max-age=31536000, immutable"
ALWAYS_ASK = "no-cache"
KEEP_BYTES_MAX = 2 * 1024 * 1024  # a larger answer is read again rather than kept
TEXT_TYPES = ("text/", "application/javascript", "application/json", "image/svg")
SUFFIXES_SERVED = {".css", ".js", ".svg", ".png", ".ico", ".webmanifest", ".woff2", ".txt"}


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


class _Shelf:
    """Files by name, looked up once and again when they changed; finished answers by digest and encoding."""

    def __init__(self) -> None:
        self._files: dict[str, StaticFile] = {}
        self._bodies: dict[tuple[str, bool], bytes] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> StaticFile | None:
        """The file of that name, None when no finder has it."""
        known = self._files.get(name)
        if known is not None and _modified_ns(known.path) == known.modified_ns:
            return known
        found = finders.find(name)
        if not isinstance(found, str) or Path(found).suffix not in SUFFIXES_SERVED:
            return None
        path = Path(found)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:HASH_CHARS]
        content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
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
        if len(body) <= KEEP_BYTES_MAX:
            with self._lock:
                self._bodies[file.digest, compressed] = body
        return body


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


shelf = _Shelf()


class HashedStaticStorage(StaticFilesStorage):
    """What `{% static %}` asks: the address of a file, with its hash in front."""

    def url(self, name: str | None) -> str:
        file = shelf.find(name or "")
        if file is None:
            raise FileNotFoundError(f"static file {name} does not exist")
        return f"{self.base_url}{file.digest}/{name}"


@requires(Permission.OPEN)
@require_safe
async def serve(request: HttpRequest, path: str) -> HttpResponse:
    """GET /static/<hash>/<path>, or /static/<path>."""
    first, _, rest = path.partition("/")
    has_hash = len(first) == HASH_CHARS and all(char in "0123456789abcdef" for char in first)
    file = await asyncio.to_thread(shelf.find, rest if has_hash else path)
    if file is None:
        raise Http404
    etag = f'"{file.digest}"'
    headers = {
        "ETag": etag,
        "Cache-Control": YEAR if has_hash and first == file.digest else ALWAYS_ASK,
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
