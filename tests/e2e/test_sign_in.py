"""Signing in, in Chromium, with a provider that is not ours: oidc-provider from npm, which OpenID has certified."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from appliance.bench.processes import free_ports
from tests.appliance_process import RunningAppliance
from tests.interop.build_cache import required_npm_folder
from tests.waiting import WITHIN_S

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402

from tests.e2e.page import PASSWORD, Page  # noqa: E402

PROVIDER = Path(__file__).parent / "provider"  # the program, package.json and the lock that pins oidc-provider
SECRET = "a-secret-of-the-test"
PEOPLE = {
    "grace": {"groups": ["gantry-admins", "others"]},
    "orla": {"groups": ["orders-team"]},
    "ada": {"groups": ["gantry-admins"]},  # the name of the account that is here already
    "mallory": {"groups": ["others"]},
}
SETTINGS = {
    "GANTRY_OIDC_CLIENT_ID": "gantry",
    "GANTRY_OIDC_CLIENT_SECRET": SECRET,
    "GANTRY_OIDC_NAME": "Crane ID",
    "GANTRY_OIDC_SCOPE": "openid profile groups",
    "GANTRY_OIDC_ROLES": "gantry-admins=admin; orders-team=operator:orders-",
}


class RunningProvider:
    """oidc-provider as a process; each start makes new keys and forgets who was signed in."""

    def __init__(self, packages: Path) -> None:
        self._packages = packages
        self.port = free_ports()
        self.issuer = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = ["node", PROVIDER / "provider.mjs", self._packages, str(self.port), json.dumps(PEOPLE)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("READY"), "the provider did not start"

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=WITHIN_S)


@pytest.fixture(scope="module")
def packages() -> Path:
    """oidc-provider, as npm's lock pins it."""
    return required_npm_folder("provider", PROVIDER, "oidc-provider")


@pytest.fixture
def provider(packages: Path) -> Iterator[RunningProvider]:
    with RunningProvider(packages) as running:
        yield running


@pytest.fixture
def appliance(tmp_path: Path, provider: RunningProvider) -> Iterator[RunningAppliance]:
    environment = SETTINGS | {"GANTRY_OIDC_ISSUER": provider.issuer}
    command = (sys.executable, "manage.py", "up")
    with RunningAppliance(tmp_path / "data", command=command, environment=environment) as running:
        yield running


class Journey:
    """What a person does, in one browser."""

    def __init__(self, browser: webdriver.Chrome, url: str, issuer: str) -> None:
        self.browser, self.url, self.issuer, self.page = browser, url, issuer, Page(browser)

    def to_provider(self, path: str = "/login") -> None:
        self.browser.get(self.url + path)
        self.page.click("a.button[href^='/login/provider']")

    def sign_in(self, name: str, path: str = "/login") -> None:
        """By the provider's own pages: who it is, then that the dashboard may know."""
        self.to_provider(path)
        self.page.find("input[name=login]").send_keys(name)
        self.page.find("input[name=password]").send_keys("any")
        self.page.click("button.login-submit")
        self.page.wait("the provider's question", lambda: self.page.find("h1").text == "Authorize")
        self.page.click("button.login-submit")

    def log_out(self) -> None:
        """Here, and at the provider too, by its own page."""
        self.page.click("form[action='/logout'] button")
        self.page.click("main .note a")
        self.page.click("button[value=yes]")
        self.page.wait("the log-in page", lambda: self.browser.current_url.startswith(self.url + "/login"))

    def is_at(self, path: str) -> None:
        self.page.wait(path, lambda: self.browser.current_url == self.url + path)

    def is_told(self, words: str) -> None:
        self.page.wait(words, lambda: words in self.page.find("main").text)


def test_people_use_a_provider(
    appliance: RunningAppliance, provider: RunningProvider, browser: webdriver.Chrome
) -> None:
    person = Journey(browser, f"http://{appliance.http}", provider.issuer)
    page = person.page
    page.sign_up(appliance)  # the first administrator has a password, and keeps it
    page.click("form[action='/logout'] button")
    person.is_at("/login")

    # an administrator by a group, who comes back to the page that was asked for
    person.sign_in("grace", "/login?next=/users")
    person.is_at("/users")
    assert "Administrator" in page.find(".who-name").text
    assert "OpenID" in page.find("main").text
    browser.get(person.url + "/audit")
    for action in ("account created by a sign-in", "logged in"):
        person.is_told(action)
    person.log_out()

    # an operator of some names, by another group
    person.sign_in("orla")
    person.is_at("/topics")
    assert "Operator" in page.find(".who-name").text
    browser.get(person.url + "/users")
    person.is_told("Not allowed")
    person.log_out()

    # no role, and a name that is taken: neither gets in
    for name, reason in {"mallory": "no role here", "ada": "belongs to another account"}.items():
        person.sign_in(name)
        person.is_told(reason)
        browser.get(person.url + "/users")
        person.is_at("/login?next=%2Fusers")
        browser.delete_all_cookies()
        browser.execute_cdp_cmd("Network.clearBrowserCookies", {})

    # what another browser began, or one brings twice, opens nothing
    person.to_provider()
    page.wait("the provider", lambda: browser.current_url.startswith(provider.issuer))
    browser.get(f"{person.url}/login/provider/back?code=stolen&state=guessed&iss={provider.issuer}")
    person.is_told("not started in this browser")
    browser.get(f"{person.url}/login/provider/back?code=stolen&state=guessed&iss={provider.issuer}")
    person.is_told("not started in this browser")

    # the provider changes its keys, is gone, is back; meanwhile the password is the way in
    provider.stop()
    provider.start()
    person.sign_in("grace")
    person.is_at("/")
    person.log_out()
    provider.stop()
    browser.get(person.url + "/login/provider/back?code=x&state=y")
    person.is_told("Start again")
    for name, text in {"username": "ada", "password": PASSWORD}.items():
        page.find(f"main form [name={name}]").send_keys(text)
    page.click("main form button")
    person.is_at("/")
    assert SECRET not in appliance.output
