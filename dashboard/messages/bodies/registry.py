"""Schemas of the registry that the operator named, as Confluent's answers: by the number in front of a body, or by a
topic's subject.

Only that address is asked, no redirect is followed, and each question has a limit. `learn` asks and waits; decoding
itself only looks at what was learned: it runs once for each message of a search. What a body asks for is its writer's
choice, so failures are kept, too, and one look asks for a few at most.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import http.client
import ipaddress
import json
import time
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.utils.translation import gettext_noop

from dashboard.messages.bodies.schema_errors import SchemaError
from dashboard.outward.http_call import Call, Request
from dashboard.outward.targets import NotResolved, TargetRefused, resolve
from gantrymq.timeouts import timeout

KNOWN_MAX = 256
KEPT_S = 3600.0  # a number never means another schema; of a subject the newest version counts
FAILED_S = 15.0
LOOK_TIMEOUT_S = 5.0
LOOK_MAX = 16  # new schemas for one look: a page of messages has hardly more
PARTS_MAX = 32  # of a schema with all that it refers to
ANSWER_BYTES_MAX = 1 << 20
SECRET_BYTES_MAX = 4096
ANYWHERE = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))  # the setting itself allows it
_threads = ThreadPoolExecutor(4, thread_name_prefix="schema-registry")


@dataclass(frozen=True, slots=True)
class Registered:
    """One schema. kind: avro, protobuf or json; parts: what it refers to, by name, before the one that needs it.

    Of Protobuf each text is a file's descriptor in base64.
    """

    kind: str
    name: str
    text: str
    parts: tuple[tuple[str, str], ...] = ()


def by_number(number: int) -> str:
    return f"/schemas/ids/{number}"


def by_subject(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/latest"


class SchemaRegistry:
    """What one registry said. secret_file: with NAME:PASSWORD, "" for none."""

    def __init__(self, url: str, secret_file: str = "") -> None:
        self._url = url.rstrip("/")
        self._secret_file = secret_file
        self._known: OrderedDict[str, tuple[float, Registered | SchemaError]] = OrderedDict()

    def known(self, path: str) -> Registered:
        """Raises SchemaError: why it is not there, or that it was not asked for yet."""
        found = self._fresh(path)
        if found is None:
            raise SchemaError(gettext_noop("The schema registry has not been asked for %(path)s yet."), path=path)
        if isinstance(found, SchemaError):
            raise found
        return found

    async def learn(self, paths: Iterable[str]) -> None:
        """Ask for those that are not known; what fails is known as that."""
        wanted = [path for path in dict.fromkeys(paths) if self._fresh(path) is None][:LOOK_MAX]
        await asyncio.gather(*(self._learn(path) for path in wanted))

    async def _learn(self, path: str) -> None:
        look = _Look(self._url, self._secret_file)
        found: Registered | SchemaError
        try:
            async with timeout(LOOK_TIMEOUT_S):
                found = await asyncio.get_running_loop().run_in_executor(_threads, look.schema, path)
        except SchemaError as exc:
            found = exc
        except TimeoutError:
            found = SchemaError(gettext_noop("The schema registry does not answer in time."))
        finally:
            look.close()
        self._known[path] = (time.monotonic() + (KEPT_S if isinstance(found, Registered) else FAILED_S), found)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def _fresh(self, path: str) -> Registered | SchemaError | None:
        until, found = self._known.get(path, (0.0, None))
        return found if time.monotonic() < until else None


class _Look:
    """The questions for one schema, on a thread. Raises SchemaError."""

    def __init__(self, url: str, secret_file: str) -> None:
        self._url = url
        self._secret_file = secret_file
        self._call: Call | None = None
        self._is_closed = False

    def close(self) -> None:
        """End what is under way, from another thread."""
        self._is_closed = True
        if self._call is not None:
            self._call.close()

    def schema(self, path: str) -> Registered:
        answer = self._asked(path)
        kind = str(answer.get("schemaType", "AVRO")).lower()
        suffix = "?format=serialized" if kind == "protobuf" else ""
        parts: dict[str, str] = {}
        self._add_parts(answer, suffix, parts)
        answer = self._asked(path + suffix) if suffix else answer
        return Registered(kind, f"{self._url}{path}", str(answer.get("schema", "")), tuple(parts.items()))

    def _add_parts(self, answer: dict[str, Any], suffix: str, parts: dict[str, str]) -> None:
        for reference in answer.get("references") or ():
            try:
                name, subject, version = str(reference["name"]), str(reference["subject"]), int(reference["version"])
            except (KeyError, TypeError, ValueError) as exc:
                raise SchemaError(gettext_noop("The schema registry's answer can't be read.")) from exc
            if name in parts:
                continue
            if len(parts) >= PARTS_MAX:
                raise SchemaError(gettext_noop("The schema refers to too many others."))
            parts[name] = ""  # one that refers to itself ends here
            found = self._asked(f"/subjects/{quote(subject, safe='')}/versions/{version}{suffix}")
            self._add_parts(found, suffix, parts)
            del parts[name]
            parts[name] = str(found.get("schema", ""))

    def _asked(self, path: str) -> dict[str, Any]:
        if self._is_closed:
            raise SchemaError(gettext_noop("The schema registry does not answer in time."))
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"} | self._account()
        self._call = Call(Request("GET", self._url + path, headers), _resolve, ANSWER_BYTES_MAX)
        try:
            answer = self._call.send()
        except (TargetRefused, NotResolved, OSError, http.client.HTTPException) as exc:
            told = {"why": str(exc) or type(exc).__name__}
            raise SchemaError(gettext_noop("The schema registry does not answer: %(why)s."), **told) from exc
        if answer.status != HTTPStatus.OK:
            told = {"path": path, "status": str(answer.status)}
            raise SchemaError(gettext_noop("The schema registry answers %(status)s for %(path)s."), **told)
        try:
            found = json.loads(answer.body) if answer.is_whole else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SchemaError(gettext_noop("The schema registry's answer can't be read."))
        return found

    def _account(self) -> dict[str, str]:
        if not self._secret_file:
            return {}
        try:
            with Path(self._secret_file).open("rb") as file:
                secret = file.read(SECRET_BYTES_MAX).strip()
        except OSError as exc:
            told = {"file": self._secret_file, "why": exc.strerror or type(exc).__name__}
            raise SchemaError(gettext_noop("The schema file %(file)s can't be read: %(why)s."), **told) from exc
        return {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}


def _resolve(host: str, port: int) -> str:
    """Any address that the operator's name has: the setting is what allows it."""
    return resolve(host, port, ANYWHERE, "body_schema_registry")


@functools.lru_cache(maxsize=2)
def _registry(url: str, secret_file: str) -> SchemaRegistry:
    return SchemaRegistry(url, secret_file)


def registry() -> SchemaRegistry | None:
    """The operator's; None where no setting names one."""
    config = settings.APPLIANCE
    url = config.body_schema_registry
    return _registry(url, config.body_schema_registry_secret_file) if url else None
