"""Say whether one process serves: for health checks of containers and scripts. Exit code 0: yes, 1: no.

  gantry ready web 127.0.0.1:8080          the web process, and all that it looks after (GET /readyz)
  gantry ready namesrv 127.0.0.1:9876      the name server answers
  gantry ready broker 127.0.0.1:10911      the broker answers, and each of its name servers knows it
  gantry ready proxy 127.0.0.1:8081        the proxy answers, and its name servers answer it
  gantry ready broker 127.0.0.1:10911 --live

With --live any answer will do: a process that gives none hangs, and should be started again. A broker that requires
accounts is asked with the one in GANTRYMQ_CREDENTIALS; without it a refusal counts as ready, too.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client

from gantrymq.errors import GantryError
from gantrymq.remoting import fastjson
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

ROLES = ("web", "namesrv", "broker", "proxy")
TIMEOUT_S = 5.0
NO_CODE = 65_535  # no server has it: the refusal comes before any queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("role", choices=ROLES, metavar="ROLE", help=f"{', '.join(ROLES[:-1])} or {ROLES[-1]}")
    parser.add_argument("address", metavar="HOST:PORT", help="where it listens")
    parser.add_argument("--live", action="store_true", help="any answer will do")
    parser.add_argument("--tls", action="store_true", help="connect with TLS; the certificate is not checked")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds to wait (default: 5)")


def run(arguments: argparse.Namespace) -> int:
    ask = {"web": _ask_web, "proxy": _ask_proxy}.get(arguments.role, _ask_server)
    why = ask(arguments)
    print(f"{arguments.role} {arguments.address}: {why or ('live' if arguments.live else 'ready')}")
    return int(bool(why))


def _ask_web(arguments: argparse.Namespace) -> str:
    """Why not; empty: yes."""
    host, _, port = arguments.address.rpartition(":")
    path = "/healthz" if arguments.live else "/readyz"
    try:
        where, timeout_s = (host.strip("[]"), int(port)), arguments.timeout
        if arguments.tls:
            context = TlsConfig(verify=False).context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                *where, context=context, timeout=timeout_s
            )
        else:
            connection = http.client.HTTPConnection(*where, timeout=timeout_s)
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = connection.getresponse()
        text = answer.read(1000).decode(errors="replace").strip()
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return f"no answer ({exc})"
    return "" if answer.status == http.client.OK else text or f"status {answer.status}"


def _ask_proxy(arguments: argparse.Namespace) -> str:
    from appliance.cli.doctor.ready_proxy import why_not  # gRPC, which the other roles do without

    host, _, port = arguments.address.rpartition(":")
    context = TlsConfig(verify=False).context() if arguments.tls else None
    try:
        number = int(port)
    except ValueError as exc:
        return f"no answer ({exc})"
    return asyncio.run(why_not(host.strip("[]"), number, context, arguments.timeout, live=arguments.live))


def _ask_server(arguments: argparse.Namespace) -> str:
    return asyncio.run(_answer(arguments))


async def _answer(arguments: argparse.Namespace) -> str:
    code = NO_CODE
    if not arguments.live:
        code = (
            RequestCode.GET_BROKER_RUNTIME_INFO if arguments.role == "broker" else RequestCode.GET_BROKER_CLUSTER_INFO
        )
    tls = TlsConfig(verify=False) if arguments.tls else None
    client = RemotingClient(tls=tls, credentials=Credentials.from_environment(), connect_timeout_s=arguments.timeout)
    try:
        answer = await client.invoke(arguments.address, RemotingCommand.request(code), timeout_s=arguments.timeout)
    except GantryError as exc:
        return f"no answer ({exc})"
    finally:
        await client.close()
    if arguments.live or answer.code == ResponseCode.NO_PERMISSION:
        return ""
    if answer.code != ResponseCode.SUCCESS:
        return f"answers with code {answer.code}"
    return _why_not_known(answer.body) if arguments.role == "broker" else ""


def _why_not_known(body: bytes) -> str:
    """Why clients do not find a broker. One of another make does not tell, and counts as known."""
    known, _, all_ = str(fastjson.loads(body)["table"].get("nameServersRegistered", "")).partition("/")
    return f"{known} of {all_} name servers know it" if known != all_ else ""
