"""Run by deploy/environment.sh with .venv's Python: says why the package index can't be reached, nothing when it can.

pip and uv try for half a minute, then say that no version of the first package was found. A machine with packages in a
folder needs no index, so the installation is tried all the same, once.
"""

import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

USUAL_INDEX = "https://pypi.org/simple"
VARIABLES = {"uv": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), "pip": ("PIP_INDEX_URL",)}
CONNECT_S = 5.0  # later it may still answer: nothing is refused because of this
PORTS = {"http": 80, "https": 443}


def main(installer: str) -> None:
    index = index_of(installer)
    if why := why_unreachable(index, CONNECT_S):
        sys.stdout.write(f"{index} can't be reached: {why}")


def index_of(installer: str) -> str:
    """Where packages come from: "pip" or "uv" says by its variables, pip also by its files."""
    named = [os.environ[name] for name in VARIABLES[installer] if os.environ.get(name)]
    if not named and installer == "pip":
        command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        named = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return without_password((named or [USUAL_INDEX])[0])


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def why_unreachable(index: str, timeout_s: float) -> str:
    """Why no connection comes to the index, or to the proxy before it; empty when one does."""
    asked = urlsplit(index)
    if asked.scheme not in PORTS or not asked.hostname:
        return ""  # a folder, or something that this does not know
    proxy = getproxies().get(asked.scheme) if not proxy_bypass(asked.hostname) else None
    peer = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else asked
    host, port = peer.hostname or "", peer.port or PORTS.get(peer.scheme, 80)
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError as exc:
        what = str(exc.strerror or exc) if not isinstance(exc, TimeoutError) else f"no answer within {timeout_s:.0f} s"
        return f"proxy {host}:{port}: {what}" if proxy else what
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
